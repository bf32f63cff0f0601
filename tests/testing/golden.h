// SPDX-License-Identifier: Apache-2.0
// Where tests find their data: the full golden sets when PLIMSOLL_GOLDEN names them, else the small copy in
// data/.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace plimsoll::testing {

/// Path of `relative` below data/ in the repository; always there.
std::string data_path(const std::string& relative);
/// Path of `relative` in the full golden sets, or else of its copy below data/golden.
std::string golden_path(const std::string& relative);
/// Those of `names` that exist as `folder`/name below golden_path: all of them with the full sets, else the
/// copied ones. A caller asserts that it is not empty.
std::vector<std::string> present(const std::string& folder, const std::vector<std::string>& names);

}  // namespace plimsoll::testing
