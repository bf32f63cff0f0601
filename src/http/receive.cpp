// SPDX-License-Identifier: Apache-2.0
#include "http/receive.h"

#include <linux/net_tstamp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace plimsoll::http {
namespace {

using Clock = std::chrono::steady_clock;

std::chrono::nanoseconds nanoseconds_of(const timespec& time) {
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

std::optional<timespec> kernel_stamp(msghdr& message) {
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_TIMESTAMPING) continue;
    timespec stamp{};  // the first of three; the others are of hardware
    std::memcpy(&stamp, CMSG_DATA(header), sizeof stamp);
    if (stamp.tv_sec != 0) return stamp;
  }
  return std::nullopt;
}

}  // namespace

void ask_for_stamps(int socket) {
  const int stamps = SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE;
  ::setsockopt(socket, SOL_SOCKET, SO_TIMESTAMPING, &stamps, sizeof stamps);
}

std::chrono::nanoseconds wall_to_steady() {
  timespec wall{};
  ::clock_gettime(CLOCK_REALTIME, &wall);
  return Clock::now().time_since_epoch() - nanoseconds_of(wall);
}

ReadStamp Reading::stamp(std::chrono::nanoseconds to_steady, ReadStamp::TimePoint after) const {
  ReadStamp stamp{read_at, std::nullopt};
  if (!received_at) return stamp;
  const Clock::time_point received(nanoseconds_of(*received_at) + to_steady);
  stamp.received_at = std::min(std::max(received, after), read_at);
  return stamp;
}

std::optional<Reading> receive(int socket, char* space, std::size_t most) {
  iovec piece{space, most};
  alignas(cmsghdr) std::array<char, 256> control;
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const auto count = ::recvmsg(socket, &message, 0);
  if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return std::nullopt;
  Reading reading;
  reading.read_at = Clock::now();
  reading.fault = count < 0 ? errno : 0;
  reading.is_end = count <= 0;
  if (count > 0) {
    reading.bytes = {space, static_cast<std::size_t>(count)};
    reading.received_at = kernel_stamp(message);
  }
  return reading;
}

}  // namespace plimsoll::http
