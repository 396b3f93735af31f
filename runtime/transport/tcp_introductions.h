// Connections between ranks of one job, made all at once in the midst of strangers: those who call are
// answered, and those who are to be called are called, by one loop that waits for nobody in
// particular.
//
// Who calls has a few seconds for its whole handshake, however it shares out its bytes. No more than
// a bounded number of handshakes go on at a time: one more ends the oldest. Whoever is not of the job
// is closed, counted, and forgotten.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "runtime/transport/tcp_address.h"
#include "runtime/transport/tcp_handshake.h"
#include "runtime/transport/tcp_sockets.h"

namespace paceline::runtime::tcp {

// How many handshakes of callers go on at a time.
inline constexpr std::size_t most_unfinished = 256;
// How long one of them may take.
inline constexpr Seconds longest_handshake{5};

// What a rank does with those that prove to be of its job.
struct Reception {
  // Returns the answer to the caller.
  std::function<Outcome(const Hello& caller)> admit;
  // The caller was welcomed on this connection.
  std::function<void(const Hello& caller, Socket socket)> take;
};

// A connection that this rank is to make.
struct Call {
  int to = 0;
  int lane = 0;
  Purpose purpose = Purpose::meeting;
  std::vector<Address> places = {};  // tried in turn
  std::string what = {};             // for errors: "connect to rank 0 at node7 port 29500"
  // Listens where this rank is to be reached, which reaches the other from `own`. Returns the port.
  std::function<std::uint16_t(const Address& own)> listen = {};
};

class Introductions {
 public:
  // The member and the listeners outlive it. `description` is told to who is of another job. The
  // patience bounds each try of a handshake, where it is shorter than longest_handshake.
  Introductions(const Member& self, const std::vector<Socket>& listeners,
                std::string_view description, Reception reception, Seconds patience);
  ~Introductions();

  // Begins a call, which is tried again until it succeeds: the other rank may come later than this
  // one, and a stranger may listen at its place before. `made` takes the connection.
  void call(Call call, std::function<void(Socket)> made);

  // Waits for something to happen, until `end` at the longest, and does what follows. Throws
  // InputError if the rank that is called refuses this one, and LostRank where a peer that has met
  // this rank is gone.
  void step(Clock::time_point end);

  // Throws LostRank for the first call that has not succeeded, if there is one.
  void expect_calls_made() const;

  // "; 5 connections were refused, the last because it speaks no protocol of Paceline"; an empty text
  // where none was. A refusal of a rank of Paceline's goes before one of anybody else.
  [[nodiscard]] std::string refused_text() const;

 private:
  struct Incoming;
  struct Outgoing;
  struct Refusals;

  void serve(Incoming& incoming);
  void decide(Incoming& incoming);
  void refuse(Incoming& incoming, Fault fault);
  void accept_some();
  void make_room();
  void drop_late();
  void go_on(Outgoing& outgoing);
  void begin(Outgoing& outgoing);
  void exchange(Outgoing& outgoing);
  void miss(Outgoing& outgoing, int error);
  void try_again(Outgoing& outgoing, const std::string& why);
  [[noreturn]] void raise_refusal(const Outgoing& outgoing) const;
  [[nodiscard]] Clock::time_point handshake_end() const;

  const Member& self_;
  const std::vector<Socket>& listeners_;
  std::string_view description_;
  Reception reception_;
  Seconds longest_;
  std::list<std::unique_ptr<Incoming>> incoming_;  // the oldest first
  std::list<std::unique_ptr<Outgoing>> outgoing_;
  std::unique_ptr<Refusals> refusals_;
};

}  // namespace paceline::runtime::tcp
