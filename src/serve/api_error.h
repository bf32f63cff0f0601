// SPDX-License-Identifier: Apache-2.0
// What does a client get when its request cannot be done? OpenAI's error object, its HTTP status, and the one
// table from our error codes to both. Plain values; any thread.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "base/json.h"
#include "base/result.h"

namespace plimsoll::serve {

struct ApiError {
  int status = 400;
  std::string message;
  std::string type = "invalid_request_error";
  std::optional<std::string> param = std::nullopt;  // the request's field
  std::optional<std::string> code = std::nullopt;   // model_not_found, context_length_exceeded, ...
};

template <class T>
using ApiResult = tl::expected<T, ApiError>;

/// A 400 about one field of the request.
ApiError bad_request(std::string message, std::string param, std::optional<std::string> code = {});
tl::unexpected<ApiError> refuse(ApiError error);

/// {"error":{"message","type","param","code"}}: all four keys, null where there is nothing to say.
Json to_json(const ApiError& error);

/// The one table from error code to HTTP status and error type.
ApiError from_error(const Error& error);

}  // namespace plimsoll::serve
