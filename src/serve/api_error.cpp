// SPDX-License-Identifier: Apache-2.0
#include "serve/api_error.h"

namespace plimsoll::serve {

ApiError bad_request(std::string message, std::string param, std::optional<std::string> code) {
  ApiError error;
  error.message = std::move(message);
  if (!param.empty()) error.param = std::move(param);
  error.code = std::move(code);
  return error;
}

tl::unexpected<ApiError> refuse(ApiError error) {
  return tl::unexpected<ApiError>(std::move(error));
}

Json to_json(const ApiError& error) {
  return Json::object({{"error", Json::object({{"message", error.message},
                                               {"type", error.type},
                                               {"param", error.param},
                                               {"code", error.code}})}});
}

ApiError from_error(const Error& error) {
  ApiError api;
  api.message = error.describe();
  switch (error.code) {
    case ErrorCode::kUsage:
    case ErrorCode::kMalformed:
    case ErrorCode::kUnsupported:
    case ErrorCode::kNo:
      api.status = 400;
      break;
    case ErrorCode::kNetwork:
    case ErrorCode::kInternal:
      api.status = 500;
      api.type = "server_error";
      break;
  }
  if (error.message.find("maximum context length") != std::string::npos) api.code = "context_length_exceeded";
  return api;
}

}  // namespace plimsoll::serve
