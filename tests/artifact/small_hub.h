// SPDX-License-Identifier: Apache-2.0
// A hub with one small repository, org/small: a config, weights of one tensor and a card, at one commit.
// Tests change what it holds and what it says. Tests only.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/artifact/scripted_hub.h"

namespace plimsoll::testing {

inline const std::string kCommit(40, 'c');

/// A safetensors file of one tensor "w" [2,3] F32, and `padding` bytes of spaces in its header.
std::string small_weights(std::size_t padding = 0);

class SmallHub {
 public:
  std::map<std::string, std::string> files = {{"config.json", R"({"model_type":"llama"})"},
                                              {"README.md", "# card"},
                                              {"sub/model.safetensors", "not looked at"},
                                              {"model.safetensors", small_weights()}};
  std::map<std::string, std::int64_t> stated_bytes;  // where the listing lies
  std::string id = "org/small";
  std::string gated = "false";
  int file_status = 200;
  bool cuts_files = false;  // their bytes end after the first one
  std::vector<std::string> file_headers;
  ScriptedHub server{[this](const AskedRequest& request) { return answer(request); }};

 private:
  std::string answer(const AskedRequest& request) const;
  std::string tree() const;
};

}  // namespace plimsoll::testing
