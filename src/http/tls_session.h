// SPDX-License-Identifier: Apache-2.0
// TLS as bytes in, bytes out: knows no socket, so that a load client reads its sockets itself and sees when
// the kernel received what it reads. Owned by one connection; one thread at a time.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace plimsoll::http {

/// What all sessions share: the certificates that are trusted.
class TlsClient {
 public:
  /// The system's certificates; SSL_CERT_FILE and SSL_CERT_DIR are heard. Without `verify` any certificate is
  /// taken. Errors: kNetwork.
  static Result<std::unique_ptr<TlsClient>> create(bool verify);
  ~TlsClient();
  struct State;
  State& state() { return *state_; }

 private:
  explicit TlsClient(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

class TlsSession {
 public:
  /// `host` is the name that the certificate must bear.
  TlsSession(TlsClient& client, const std::string& host);
  ~TlsSession();

  /// Takes bytes that came from the peer.
  void feed(std::string_view bytes);
  /// Goes on with the handshake; the bytes to send are in take_outgoing(). Errors: kNetwork with the reason
  /// in OpenSSL's words.
  Status advance();
  bool is_established() const { return is_established_; }
  /// Encrypts; the bytes to send are in take_outgoing().
  Status write(std::string_view bytes);
  /// Appends all plain bytes that are there. False when the peer has closed the session, or broken it.
  bool read(std::string& plain);
  /// Says goodbye; the bytes to send are in take_outgoing().
  void close();
  std::string take_outgoing();

 private:
  struct State;
  std::unique_ptr<State> state_;
  bool is_established_ = false;
};

}  // namespace plimsoll::http
