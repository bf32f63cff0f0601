// SPDX-License-Identifier: Apache-2.0
// How an operation that the outside world can make fail says so: Result<T> holds a value or an Error.
// An Error is a code, a sentence, a place and an advice; the top of the pipeline prints it once.
// What only our own bug can cause is PLIMSOLL_CHECK, never a Result. Values only; safe to move across
// threads.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace plimsoll {

/// What kind of failure; each maps to one exit status (cli) and one HTTP status (serve).
enum class ErrorCode {
  kUsage,        // the caller asked for something that makes no sense
  kMalformed,    // a file or message cannot be read as what it claims to be
  kUnsupported,  // it is valid, but we cannot do it
  kNetwork,      // a socket, a port or a remote host
  kNo,           // understood and computed: the answer is no (does not fit, check failed)
  kInternal,     // our own bug
};

/// The name that JSON carries: usage malformed unsupported network no internal.
std::string_view to_string(ErrorCode code);

struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;  // what was being done, what was found, what was expected
  std::string where;    // file and byte offset, JSON pointer, or flag; may be empty
  std::string fix;      // what to do; may be empty

  /// One or two lines for stderr: "message (where)" and, on its own line, the advice. Control bytes are
  /// escaped and very long parts cut: parts of an error may come from a file or a peer.
  std::string describe() const;
};

template <class T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using tl::expected<T, Error>::expected;
};

using Status = Result<void>;

/// An error to return: `return fail(ErrorCode::kMalformed, "...", "config.json: /hidden_size", "...");`
inline tl::unexpected<Error> fail(ErrorCode code, std::string message, std::string where = {},
                                  std::string fix = {}) {
  return tl::unexpected<Error>(Error{code, std::move(message), std::move(where), std::move(fix)});
}
inline tl::unexpected<Error> fail(Error error) {
  return tl::unexpected<Error>(std::move(error));
}

[[noreturn]] void check_failed(const char* condition, const char* file, int line, std::string_view message);

}  // namespace plimsoll

#define PLIMSOLL_CONCAT_INNER(a, b) a##b
#define PLIMSOLL_CONCAT(a, b) PLIMSOLL_CONCAT_INNER(a, b)

/// `PLIMSOLL_TRY(auto x, compute());` binds the value or returns the error from the enclosing function.
#define PLIMSOLL_TRY(declaration, expression)                                    \
  auto PLIMSOLL_CONCAT(try_, __LINE__) = (expression);                           \
  if (!PLIMSOLL_CONCAT(try_, __LINE__))                                          \
    return ::plimsoll::fail(std::move(PLIMSOLL_CONCAT(try_, __LINE__)).error()); \
  declaration = std::move(*PLIMSOLL_CONCAT(try_, __LINE__))

/// `PLIMSOLL_TRY_VOID(check());` returns the error of a Status from the enclosing function.
#define PLIMSOLL_TRY_VOID(expression)                                        \
  do {                                                                       \
    auto try_status = (expression);                                          \
    if (!try_status) return ::plimsoll::fail(std::move(try_status).error()); \
  } while (false)

/// A condition that only our own bug can break; on in every build. The second argument is a sentence.
#define PLIMSOLL_CHECK(condition, message) \
  (static_cast<bool>(condition) ? void(0) : ::plimsoll::check_failed(#condition, __FILE__, __LINE__, message))

#ifdef NDEBUG
#define PLIMSOLL_DCHECK(condition, message) void(0)
#else
#define PLIMSOLL_DCHECK(condition, message) PLIMSOLL_CHECK(condition, message)
#endif
