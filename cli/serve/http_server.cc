// Tests: tests/cli/serve_test.py (end to end).
#include "cli/serve/http_server.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <csignal>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <string_view>
#include <utility>

#include "models/base/error.h"
#include "models/base/json.h"

namespace paceline::serve {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using boost::system::error_code;

// What a refused client may still send until it has read why.
constexpr std::size_t most_drained_bytes = 1 << 20;
constexpr std::chrono::seconds drain_time{1};
constexpr std::chrono::milliseconds pause_without_descriptors{100};

// The page has one script and one style, from here; it asks nobody else, and nobody else may frame it.
constexpr std::array<std::pair<const char*, const char*>, 7> security_headers = {{
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
     "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cross-Origin-Opener-Policy", "same-origin-allow-popups"},
    {"Cache-Control", "no-store"},
}};

std::string_view view(beast::string_view text) {
  return {text.data(), text.size()};
}

HttpResponse refusal(int status, const std::string& problem) {
  return {.status = status,
          .content_type = "application/json",
          .body = std::make_shared<const std::string>(Json{{"error", problem}}.in_one_line())};
}

std::optional<asio::ip::address> parsed_address(const std::string& text) {
  if (text == "localhost") return asio::ip::address_v4::loopback();
  error_code error;
  const asio::ip::address address = asio::ip::make_address(text, error);
  if (error) return std::nullopt;
  return address;
}

// "127.0.0.1:8080", "[::1]", "localhost" without the port and the brackets; empty for what is no host.
std::string host_of(std::string_view field) {
  if (field.starts_with('[')) {
    const std::size_t end = field.find(']');
    return end == std::string_view::npos ? "" : std::string(field.substr(1, end - 1));
  }
  return std::string(field.substr(0, field.find(':')));
}

// Whether a client may call this server so. Names of others may lead here, too: that is what a page
// of theirs does that wants to read answers (DNS rebinding). An address cannot be led elsewhere.
bool is_own_name(const std::string& host, const std::vector<std::string>& own_names) {
  const auto is_same = [&](const std::string& name) { return beast::iequals(name, host); };
  return is_same("localhost") || parsed_address(host) ||
         std::any_of(own_names.begin(), own_names.end(), is_same);
}

class Session;

// What sessions share. Its members are the server's thread's, except for the gate.
struct Shared {
  const HttpServerOptions& options;
  const HttpHandler& handler;
  asio::io_context& context;
  std::map<const Session*, std::shared_ptr<Session>> sessions = {};
};

// Leads from the threads that make answers to the server's, until the server ends.
struct Gate {
  std::mutex mutex;
  asio::io_context* context = nullptr;  // null once the server has ended
};

// One connection.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(tcp::socket socket, Shared& shared, std::shared_ptr<Gate> gate)
      : stream_(std::move(socket)), shared_(shared), gate_(std::move(gate)) {}
  ~Session() { *is_abandoned_ = true; }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void read() {
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(shared_.options.most_header_bytes));
    parser_->body_limit(0);
    // The limit holds for all of the request, however small the pieces are in which it comes.
    stream_.expires_after(shared_.options.request_time);
    http::async_read(
        stream_, buffer_, *parser_,
        [self = shared_from_this()](error_code error, std::size_t) { self->take(error); });
  }

  void leave() {
    *is_abandoned_ = true;
    stream_.close();
    shared_.sessions.erase(this);
  }

 private:
  using Request = http::request<http::string_body>;

  void take(error_code error) {
    if (!error) {
      answer(parser_->get());
    } else if (error == http::error::header_limit || error == http::error::buffer_overflow) {
      refuse(431, fmt::format("the request line and its headers have more than {} bytes",
                              shared_.options.most_header_bytes));
    } else if (error == http::error::body_limit) {
      refuse(413, "a request has no body here");
    } else if (error == http::error::end_of_stream || error == http::error::partial_message ||
               error.category() != http::make_error_code(http::error::bad_line_ending).category()) {
      leave();  // closed, or too slow
    } else {
      refuse(400, "this is no HTTP request: " + error.message());
    }
  }

  // Returns the refusal of a well-formed request, or nothing if the request is to be answered.
  [[nodiscard]] std::optional<HttpResponse> problem_of(const Request& request) const {
    if (request.method() != http::verb::get && request.method() != http::verb::head)
      return refusal(405, "all here is read-only: ask by GET or HEAD");
    if (request.count(http::field::host) != 1) return refusal(400, "there is not one Host");
    const std::string host = host_of(view(request[http::field::host]));
    if (!is_own_name(host, shared_.options.own_names))
      return refusal(421, "the Host is not this server: call it by its address");
    if (!request.target().starts_with('/')) return refusal(400, "the target is no path");
    // Pages of others may lead here, but not read or load what is here.
    if (request["Sec-Fetch-Site"] == "cross-site" && request["Sec-Fetch-Mode"] != "navigate")
      return refusal(403, "pages of others read nothing here");
    return std::nullopt;
  }

  void answer(const Request& request) {
    is_head_ = request.method() == http::verb::head;
    is_kept_ = request.keep_alive();
    if (const auto problem = problem_of(request)) {
      is_kept_ = false;
      send(*problem);
      return;
    }
    stream_.expires_never();
    const std::string_view target = view(request.target());
    const std::size_t mark = std::min(target.find('?'), target.size());
    const std::uint64_t turn = ++turn_;
    watch(turn);
    shared_.handler({.path = std::string(target.substr(0, mark)),
                     .query = std::string(target.substr(std::min(mark + 1, target.size()))),
                     .is_abandoned = is_abandoned_},
                    // The session is the server's thread's, and may be gone by then.
                    [gate = gate_, weak = weak_from_this(), turn](HttpResponse response) {
                      const std::lock_guard lock(gate->mutex);
                      if (gate->context == nullptr) return;
                      asio::post(*gate->context, [weak, turn, response = std::move(response)] {
                        if (const auto self = weak.lock(); self && self->turn_ == turn)
                          self->send(response);
                      });
                    });
  }

  // Sees that a client goes away while its answer is made.
  void watch(std::uint64_t turn) {
    stream_.socket().async_wait(tcp::socket::wait_read,
                                [self = shared_from_this(), turn](error_code error) {
                                  if (self->turn_ != turn) return;  // answered
                                  char next = 0;
                                  self->stream_.socket().non_blocking(true, error);
                                  const std::size_t bytes = self->stream_.socket().receive(
                                      asio::buffer(&next, 1), tcp::socket::message_peek, error);
                                  if (error == asio::error::would_block) return self->watch(turn);
                                  if (error || bytes == 0) {
                                    ++self->turn_;
                                    self->leave();
                                  }
                                });
  }

  void refuse(int status, const std::string& problem) {
    is_head_ = false;
    is_kept_ = false;
    send(refusal(status, problem));
  }

  template <class Body>
  void write(std::shared_ptr<http::response<Body>> message,
             std::shared_ptr<const std::string> body) {
    http::async_write(stream_, *message,
                      [self = shared_from_this(), message, body](error_code error, std::size_t) {
                        if (error || !self->is_kept_) return self->close(error);
                        self->read();
                      });
  }

  void send(const HttpResponse& response) {
    ++turn_;
    const auto prepare = [&](auto& message) {
      message.result(static_cast<unsigned>(response.status));
      message.version(11);
      message.keep_alive(is_kept_);
      message.set(http::field::content_type, response.content_type);
      if (response.status == 405) message.set(http::field::allow, "GET, HEAD");
      if (response.status == 503) message.set(http::field::retry_after, "1");
      for (const auto& [name, value] : security_headers) message.set(name, value);
      message.content_length(response.body->size());
    };
    stream_.expires_after(shared_.options.request_time);
    if (is_head_) {
      const auto message = std::make_shared<http::response<http::empty_body>>();
      prepare(*message);
      return write(message, response.body);
    }
    const auto message = std::make_shared<http::response<http::span_body<const char>>>();
    message->body() = {response.body->data(), response.body->size()};
    prepare(*message);
    write(message, response.body);
  }

  // Ends the connection so that the client reads the answer: where it has sent more than was read, a
  // plain close would throw that answer away.
  void close(error_code error) {
    if (error) return leave();
    stream_.socket().shutdown(tcp::socket::shutdown_send, error);
    stream_.expires_after(drain_time);
    drain(most_drained_bytes);
  }

  void drain(std::size_t left) {
    buffer_.clear();
    stream_.async_read_some(buffer_.prepare(4096),
                            [self = shared_from_this(), left](error_code error, std::size_t bytes) {
                              if (error || bytes >= left) return self->leave();
                              self->drain(left - bytes);
                            });
  }

  beast::tcp_stream stream_;
  Shared& shared_;
  std::shared_ptr<Gate> gate_;
  beast::flat_buffer buffer_{16384};
  std::optional<http::request_parser<http::string_body>> parser_;
  bool is_head_ = false;
  bool is_kept_ = false;
  std::uint64_t turn_ = 0;  // of requests and answers, by which what comes late is told
  std::shared_ptr<std::atomic<bool>> is_abandoned_ = std::make_shared<std::atomic<bool>>(false);
};

// Takes connections.
class Listener {
 public:
  Listener(Shared& shared, std::shared_ptr<Gate> gate)
      : shared_(shared), gate_(std::move(gate)), acceptor_(shared.context), pause_(shared.context) {
    const std::string& text = shared.options.address;
    const auto address = parsed_address(text);
    PACELINE_ASSERT(address.has_value(), "the address was checked");
    const tcp::endpoint endpoint(*address, static_cast<unsigned short>(shared.options.port));
    try {
      acceptor_.open(endpoint.protocol());
      acceptor_.set_option(tcp::acceptor::reuse_address(true));
      acceptor_.bind(endpoint);
      acceptor_.listen();
    } catch (const boost::system::system_error& error) {
      throw RunError(fmt::format("listen at {}, port {}", text, shared.options.port),
                     error.code().message());
    }
  }

  [[nodiscard]] std::string url() const {
    const tcp::endpoint own = acceptor_.local_endpoint();
    const std::string address = own.address().to_string();
    return fmt::format("http://{}:{}/", own.address().is_v6() ? "[" + address + "]" : address,
                       own.port());
  }

  // Takes the next connection, unless that is under way.
  void accept() {
    if (std::exchange(is_accepting_, true)) return;
    acceptor_.async_accept([this](error_code error, tcp::socket socket) {
      is_accepting_ = false;
      if (error == asio::error::operation_aborted) return;
      if (error) return wait();  // no descriptor is free
      // Beyond the limit the socket is closed at once.
      if (shared_.sessions.size() < shared_.options.most_connections) {
        socket.set_option(tcp::no_delay(true), error);
        const auto session = std::make_shared<Session>(std::move(socket), shared_, gate_);
        shared_.sessions.emplace(session.get(), session);
        session->read();
      }
      accept();
    });
  }

 private:
  void wait() {
    pause_.expires_after(pause_without_descriptors);
    pause_.async_wait([this](error_code error) {
      if (!error) accept();
    });
  }

  Shared& shared_;
  std::shared_ptr<Gate> gate_;
  tcp::acceptor acceptor_;
  asio::steady_timer pause_;
  bool is_accepting_ = false;
};

}  // namespace

bool is_loopback(const std::string& address) {
  const auto parsed = parsed_address(address);
  if (!parsed)
    throw InputError(fmt::format("{} is no address", in_quotes(address)),
                     "write an IPv4 or IPv6 address, as in 127.0.0.1");
  return parsed->is_loopback();
}

void serve_http(const HttpServerOptions& options, const HttpHandler& handler,
                const std::function<void(const std::string& url)>& started) {
  const auto gate = std::make_shared<Gate>();
  asio::io_context context(1);
  Shared shared{options, handler, context};
  gate->context = &context;
  Listener listener(shared, gate);
  asio::signal_set signals(context, SIGINT, SIGTERM);
  signals.async_wait([&](error_code, int) { context.stop(); });
  listener.accept();
  started(listener.url());
  while (!context.stopped()) {
    try {
      context.run();
    } catch (const std::bad_alloc&) {
      // All connections end, with the requests on them, which frees their memory.
      while (!shared.sessions.empty()) std::shared_ptr(shared.sessions.begin()->second)->leave();
      listener.accept();
    }
  }
  // Answers that come from now on lead nowhere. Handlers that wait still hold sessions, which go with
  // the context.
  const std::lock_guard lock(gate->mutex);
  gate->context = nullptr;
  shared.sessions.clear();
}

}  // namespace paceline::serve
