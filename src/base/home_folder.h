// SPDX-License-Identifier: Apache-2.0
// Where is the home of the user who runs this? Any thread may call while nobody changes the environment.
#pragma once

#include <string>

namespace plimsoll {

/// The password database's folder of this process's user, which is what `~` means where HOME is not set; "/"
/// for a user whom the database does not know, as containers have them.
std::string home_of_user();

/// HOME, or home_of_user() where it is not set or empty.
std::string home_folder();

}  // namespace plimsoll
