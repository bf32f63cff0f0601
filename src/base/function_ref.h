// SPDX-License-Identifier: Apache-2.0
// A callable, lent for the length of a call: two words, no copy of it and no allocation, whatever it
// captures. Does not own; the callable has to outlive it.
#pragma once

#include <concepts>
#include <memory>
#include <type_traits>

namespace plimsoll {

template <class Signature>
class FunctionRef;

template <class Return, class... Arguments>
class FunctionRef<Return(Arguments...)> {
 public:
  using Call = Return (*)(const void*, Arguments...);

  /// Anything that can be called so while it is const.
  template <class Callable>
    requires(!std::same_as<std::remove_cvref_t<Callable>, FunctionRef> &&
             std::is_invocable_r_v<Return, const std::remove_reference_t<Callable>&, Arguments...>)
  FunctionRef(const Callable& callable)  // meant to convert
      : object_(std::addressof(callable)), call_([](const void* object, Arguments... arguments) -> Return {
          return (*static_cast<const Callable*>(object))(arguments...);
        }) {}
  FunctionRef(const void* object, Call function) : object_(object), call_(function) {}

  Return operator()(Arguments... arguments) const { return call_(object_, arguments...); }

  const void* object() const { return object_; }
  Call call() const { return call_; }

 private:
  const void* object_;
  Call call_;
};

}  // namespace plimsoll
