// SPDX-License-Identifier: Apache-2.0
#include "http/tls_session.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <array>

namespace plimsoll::http {
namespace {

std::string last_error(const SSL* ssl) {
  const unsigned long code = ERR_get_error();
  if (ssl && ERR_GET_REASON(code) == SSL_R_CERTIFICATE_VERIFY_FAILED)
    return X509_verify_cert_error_string(SSL_get_verify_result(ssl));
  if (code == 0) return "the peer closed the connection";
  std::array<char, 256> text{};
  ERR_error_string_n(code, text.data(), text.size());
  return text.data();
}

}  // namespace

struct TlsClient::State {
  SSL_CTX* context = nullptr;
  ~State() { SSL_CTX_free(context); }
};

TlsClient::TlsClient(std::unique_ptr<State> state) : state_(std::move(state)) {}
TlsClient::~TlsClient() = default;

Result<std::unique_ptr<TlsClient>> TlsClient::create(bool verify) {
  auto state = std::make_unique<State>();
  state->context = SSL_CTX_new(TLS_client_method());
  if (!state->context || SSL_CTX_set_default_verify_paths(state->context) != 1)
    return fail(ErrorCode::kNetwork, "cannot set up TLS: " + last_error(nullptr));
  SSL_CTX_set_verify(state->context, verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  SSL_CTX_set_min_proto_version(state->context, TLS1_2_VERSION);
  return std::unique_ptr<TlsClient>(new TlsClient(std::move(state)));
}

struct TlsSession::State {
  SSL* ssl = nullptr;
  BIO* incoming = nullptr;  // both belong to ssl
  BIO* outgoing = nullptr;
  ~State() { SSL_free(ssl); }
};

TlsSession::TlsSession(TlsClient& client, const std::string& host) : state_(std::make_unique<State>()) {
  state_->ssl = SSL_new(client.state().context);
  state_->incoming = BIO_new(BIO_s_mem());
  state_->outgoing = BIO_new(BIO_s_mem());
  PLIMSOLL_CHECK(state_->ssl && state_->incoming && state_->outgoing, "OpenSSL has no memory");
  SSL_set_bio(state_->ssl, state_->incoming, state_->outgoing);
  SSL_set_connect_state(state_->ssl);
  SSL_set_tlsext_host_name(state_->ssl, host.c_str());
  // An address is held against the certificate's addresses, a name against its names.
  if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(state_->ssl), host.c_str()) != 1)
    SSL_set1_host(state_->ssl, host.c_str());
}

TlsSession::~TlsSession() = default;

void TlsSession::feed(std::string_view bytes) {
  BIO_write(state_->incoming, bytes.data(), static_cast<int>(bytes.size()));
}

Status TlsSession::advance() {
  if (is_established_) return {};
  ERR_clear_error();
  const int result = SSL_do_handshake(state_->ssl);
  is_established_ = result == 1;
  if (is_established_ || SSL_get_error(state_->ssl, result) == SSL_ERROR_WANT_READ) return {};
  return fail(ErrorCode::kNetwork, last_error(state_->ssl));
}

Status TlsSession::write(std::string_view bytes) {
  ERR_clear_error();
  std::size_t written = 0;
  // A memory BIO takes everything at once.
  if (bytes.empty() || SSL_write_ex(state_->ssl, bytes.data(), bytes.size(), &written) == 1) return {};
  return fail(ErrorCode::kNetwork, last_error(state_->ssl));
}

bool TlsSession::read(std::string& plain) {
  std::array<char, 16 * 1024> piece;  // one TLS record holds no more
  ERR_clear_error();
  for (;;) {
    std::size_t count = 0;
    const int result = SSL_read_ex(state_->ssl, piece.data(), piece.size(), &count);
    if (result != 1) return SSL_get_error(state_->ssl, result) == SSL_ERROR_WANT_READ;
    plain.append(piece.data(), count);
  }
}

void TlsSession::close() {
  ERR_clear_error();
  if (is_established_) SSL_shutdown(state_->ssl);
}

std::string TlsSession::take_outgoing() {
  std::string bytes(BIO_ctrl_pending(state_->outgoing), '\0');
  if (!bytes.empty()) BIO_read(state_->outgoing, bytes.data(), static_cast<int>(bytes.size()));
  return bytes;
}

}  // namespace plimsoll::http
