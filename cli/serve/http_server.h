// An HTTP server for one page and its data: GET and HEAD, on a loopback address unless somebody asked for
// another. It knows nothing of what it serves.
//
// All sockets are one thread's, so that a client that sends or reads slowly holds a socket and nothing
// else. What is hostile ends here: a request that is too long, too slow, malformed, has a body or another
// method, or comes by a name that is not this server's (DNS rebinding), and connections beyond a number.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace paceline::serve {

// A request that is well formed.
struct HttpRequest {
  std::string path;   // begins with '/'; as it came, with its percent signs
  std::string query;  // what follows the '?'; likewise
  // Becomes true once nobody waits for the answer.
  std::shared_ptr<const std::atomic<bool>> is_abandoned;
};

struct HttpResponse {
  int status = 200;
  std::string content_type;
  std::shared_ptr<const std::string> body;  // not null
};

// Takes the answer, once, on any thread. After the server has ended it does nothing.
using Reply = std::function<void(HttpResponse)>;
// Called on the server's thread, which it must not keep waiting: what takes long is for other threads.
using HttpHandler = std::function<void(const HttpRequest&, Reply)>;

struct HttpServerOptions {
  std::string address = "127.0.0.1";  // IPv4 or IPv6
  int port = 0;                       // 0: one that is free
  std::vector<std::string>
      own_names;  // by which clients may call it, beside localhost and addresses
  std::size_t most_connections = 256;
  std::size_t most_header_bytes = 8192;  // of the request line and all headers
  std::chrono::milliseconds request_time{
      10'000};  // for a request to arrive, and an answer to leave
};

// Whether only this machine reaches the address. Throws InputError for a text that is no address.
[[nodiscard]] bool is_loopback(const std::string& address);

// Serves until SIGINT or SIGTERM comes, which it then takes for itself. `started` is called with the
// address of the page, as in "http://127.0.0.1:8080/", once clients can connect. Throws RunError if the
// port cannot be listened at, UnavailableError in a build without Boost.
void serve_http(const HttpServerOptions& options, const HttpHandler& handler,
                const std::function<void(const std::string& url)>& started);

}  // namespace paceline::serve
