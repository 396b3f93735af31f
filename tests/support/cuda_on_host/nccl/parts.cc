#include "tests/support/cuda_on_host/nccl/parts.h"

#include <algorithm>
#include <cstring>

#include "tests/support/cuda_on_host/nccl/board.h"

namespace cuda_on_host::nccl {
namespace {

const char* name(Kind kind) {
  switch (kind) {
    case Kind::send:
      return "send";
    case Kind::receive:
      return "receive";
    case Kind::all_reduce:
      return "all-reduce";
    case Kind::reduce:
      return "reduce";
    case Kind::broadcast:
      return "broadcast";
    case Kind::reduce_scatter:
      return "reduce-scatter";
    case Kind::all_gather:
      return "all-gather";
  }
  return "";
}

const char* name(ncclDataType_t type) {
  static constexpr const char* names[] = {"int8",    "uint8",    "int32",      "uint32",
                                          "int64",   "uint64",   "float16",    "float32",
                                          "float64", "bfloat16", "float8e4m3", "float8e5m2"};
  return names[static_cast<std::size_t>(type)];
}

const char* name(ncclRedOp_t op) {
  static constexpr const char* names[] = {"sum", "prod", "max", "min", "avg"};
  return names[static_cast<std::size_t>(op)];
}

bool is_transfer(const Part& part) {
  return part.kind == Kind::send || part.kind == Kind::receive;
}
bool reduces(const Part& part) {
  return part.kind == Kind::all_reduce || part.kind == Kind::reduce ||
         part.kind == Kind::reduce_scatter;
}
bool has_root(const Part& part) {
  return part.kind == Kind::reduce || part.kind == Kind::broadcast;
}

std::pair<int, int> way_of(const Part& part) {
  return part.kind == Kind::send ? std::pair(part.comm->rank, part.peer)
                                 : std::pair(part.peer, part.comm->rank);
}

// The parts that match this one, itself included, as far as they are issued; of other processes, as
// far as they are on the board.
std::vector<PartPointer> partners(const Part& part) {
  Clique& clique = *part.comm->clique;
  std::vector<PartPointer> found;
  const auto look = [&](Parts& parts, int rank, const std::string& name) {
    auto at = parts.find(part.number);
    if (at == parts.end() && clique.board != nullptr && rank != part.comm->rank) {
      ncclComm* const other = clique.members[static_cast<std::size_t>(rank)];
      if (const PartPointer left = clique.board->find(name, other)) {
        left->number = part.number;
        at = parts.emplace(part.number, left).first;
        ++progress();
      }
    }
    if (at != parts.end()) found.push_back(at->second);
  };
  if (is_transfer(part)) {
    const auto [from, to] = way_of(part);
    look(clique.sends[{from, to}], from, name_of_transfer(true, from, to, part.number));
    look(clique.receives[{from, to}], to, name_of_transfer(false, from, to, part.number));
  } else {
    for (int rank = 0; rank < clique.ranks; ++rank)
      look(clique.collectives[rank], rank, name_of_collective(rank, part.number));
  }
  return found;
}

std::size_t all_partners(const Part& part) {
  return is_transfer(part) ? 2 : static_cast<std::size_t>(part.comm->clique->ranks);
}

bool is_active(const Part& part) {
  if (part.is_remote) return true;
  const OperationPointer owner = part.owner.lock();
  return part.active && owner != nullptr && !owner->done;
}

// Whether the two match. Reports it once if they do not; they then wait for ever.
bool match(Part& a, Part& b) {
  const bool same_kind = is_transfer(a) || a.kind == b.kind;
  const bool same_op = !reduces(a) || a.op == b.op;
  const bool same_root = !has_root(a) || a.peer == b.peer;
  if (same_kind && same_op && same_root && a.count == b.count && a.type == b.type) return true;
  if (a.refused && b.refused) return false;
  a.refused = b.refused = true;
  die("mismatch: " + text_of(a) + ", but " + text_of(b));
}

bool is_buffered(const Part& part) {
  return part.kind == Kind::send && part.count * bytes_of(part.type) <= buffered_bytes();
}

// Whether the part could be completed now.
bool can_complete(Part& part) {
  if (part.done) return true;
  const std::vector<PartPointer> all = partners(part);
  for (const PartPointer& other : all) {
    if (!match(part, *other)) return false;
  }
  if (is_buffered(part)) return true;
  return all.size() == all_partners(part) &&
         std::all_of(all.begin(), all.end(),
                     [](const PartPointer& p) { return p->buffered || is_active(*p); });
}

void finish(const PartPointer& part) {
  part->done = true;
  part->mail = {};
}

void forget(const Part& part) {
  Clique& clique = *part.comm->clique;
  if (is_transfer(part)) {
    clique.sends[way_of(part)].erase(part.number);
    clique.receives[way_of(part)].erase(part.number);
  } else {
    for (auto& entry : clique.collectives) entry.second.erase(part.number);
  }
}

// On the virtual clock none of them begins before all have come.
void meet(const std::vector<PartPointer>& parts) {
  double all_came = 0;
  for (const PartPointer& part : parts)
    if (const OperationPointer owner = part->owner.lock(); owner != nullptr && !owner->done)
      all_came = std::max(all_came, arrival_of(*owner));
  for (const PartPointer& part : parts)
    if (const OperationPointer owner = part->owner.lock())
      owner->not_before = std::max(owner->not_before, all_came);
}

void complete_transfer(const PartPointer& part) {
  const std::vector<PartPointer> both = partners(*part);
  const std::size_t bytes = part->count * bytes_of(part->type);
  const bool meets =
      both.size() == 2 && (both[0]->buffered || is_active(*both[0])) && is_active(*both[1]);
  if (!meets) {  // a send that is buffered
    part->mail.assign(part->in, part->in + bytes);
    part->buffered = part->done = true;
    ++progress();
    return;
  }
  const std::byte* const source = both[0]->buffered ? both[0]->mail.data() : both[0]->in;
  if (bytes > 0 && !both[1]->is_remote && runs_bodies()) std::memcpy(both[1]->out, source, bytes);
  if (!both[0]->buffered) meet(both);
  for (const PartPointer& p : both)
    if (p->is_remote) part->comm->clique->board->take_away(name_on_board(*p));
  finish(both[0]);
  finish(both[1]);
  forget(*part);
  ++progress();
}

// What one rank ends with.
std::vector<std::byte> result_of(const Part& part, const std::vector<PartPointer>& all) {
  const std::size_t bytes = part.count * bytes_of(part.type);
  const auto rank = static_cast<std::size_t>(part.comm->rank);
  std::vector<const std::byte*> in;
  for (const PartPointer& p : all)
    in.push_back(p->in + (part.kind == Kind::reduce_scatter ? rank * bytes : 0));
  std::vector<std::byte> out(bytes);
  switch (part.kind) {
    case Kind::all_reduce:
    case Kind::reduce:
    case Kind::reduce_scatter:
      reduce(in, out.data(), part.count, part.type, part.op);
      break;
    case Kind::broadcast:
      out.assign(in[static_cast<std::size_t>(part.peer)],
                 in[static_cast<std::size_t>(part.peer)] + bytes);
      break;
    case Kind::all_gather:
      out.clear();
      for (const std::byte* from : in) out.insert(out.end(), from, from + bytes);
      break;
    case Kind::send:
    case Kind::receive:
      break;
  }
  return out;
}

void complete_collective(const PartPointer& part) {
  const std::vector<PartPointer> all = partners(*part);
  std::vector<std::vector<std::byte>> results;
  for (const PartPointer& p : all)
    results.push_back(p->is_remote || !runs_bodies() ? std::vector<std::byte>()
                                                     : result_of(*p, all));
  meet(all);
  for (std::size_t r = 0; r < all.size(); ++r) {
    const bool receives = all[r]->kind != Kind::reduce || all[r]->peer == all[r]->comm->rank;
    if (receives && !results[r].empty())
      std::memcpy(all[r]->out, results[r].data(), results[r].size());
    finish(all[r]);
  }
  // All have this one's part, so they are done with those before it.
  if (part->comm->clique->board != nullptr && part->number > 0)
    part->comm->clique->board->take_away(name_of_collective(part->comm->rank, part->number - 1));
  forget(*part);
  ++progress();
}

std::vector<Access> accesses_of(const Part& part) {
  const std::size_t bytes = part.count * bytes_of(part.type);
  const auto ranks = static_cast<std::size_t>(part.comm->clique->ranks);
  const bool is_root = part.peer == part.comm->rank;
  std::vector<Access> list;
  const auto read = [&](std::size_t size) { list.push_back({part.in, size, false}); };
  const auto write = [&](std::size_t size) { list.push_back({part.out, size, true}); };
  switch (part.kind) {
    case Kind::send:
      read(bytes);
      break;
    case Kind::receive:
      write(bytes);
      break;
    case Kind::all_reduce:
      read(bytes), write(bytes);
      break;
    case Kind::reduce:
      read(bytes);
      if (is_root) write(bytes);
      break;
    case Kind::broadcast:
      if (is_root) read(bytes);
      write(bytes);
      break;
    case Kind::reduce_scatter:
      read(bytes * ranks), write(bytes);
      break;
    case Kind::all_gather:
      read(bytes), write(bytes * ranks);
      break;
  }
  std::erase_if(list, [](const Access& a) { return a.bytes == 0; });
  return list;
}

void register_part(const PartPointer& part) {
  Clique& clique = *part->comm->clique;
  Parts* parts = nullptr;
  std::uint64_t* issued = nullptr;
  if (part->kind == Kind::send) {
    parts = &clique.sends[way_of(*part)];
    issued = &clique.sends_issued[way_of(*part)];
  } else if (part->kind == Kind::receive) {
    parts = &clique.receives[way_of(*part)];
    issued = &clique.receives_issued[way_of(*part)];
  } else {
    parts = &clique.collectives[part->comm->rank];
    issued = &clique.collectives_issued[part->comm->rank];
  }
  part->number = (*issued)++;
  (*parts)[part->number] = part;
}

// What another process has said of a part that it has not left on the board yet.
std::string held_back(const Part& part, const std::vector<PartPointer>& there) {
  const Clique& clique = *part.comm->clique;
  if (clique.board == nullptr) return {};
  const auto issued = [&](int rank, const std::string& name) {
    return clique.board->is_announced(name)
               ? "rank " + std::to_string(rank) + " " + name + " is behind others of its stream"
               : std::string();
  };
  if (is_transfer(part)) {
    const auto [from, to] = way_of(part);
    const bool sends = part.kind == Kind::send;
    return issued(part.peer, name_of_transfer(!sends, from, to, part.number));
  }
  for (int rank = 0; rank < clique.ranks; ++rank) {
    const bool came = std::any_of(there.begin(), there.end(),
                                  [&](const PartPointer& p) { return p->comm->rank == rank; });
    const std::string text = came ? "" : issued(rank, name_of_collective(rank, part.number));
    if (!text.empty()) return text;
  }
  return {};
}

std::string missing(const Part& part, const std::vector<PartPointer>& there) {
  if (const std::string text = held_back(part, there); !text.empty()) return text;
  if (part.kind == Kind::send)
    return "rank " + std::to_string(part.peer) + " has issued no matching receive";
  if (part.kind == Kind::receive)
    return "rank " + std::to_string(part.peer) + " has issued no matching send";
  std::string ranks;
  for (int rank = 0; rank < part.comm->clique->ranks; ++rank) {
    const bool came = std::any_of(there.begin(), there.end(),
                                  [&](const PartPointer& p) { return p->comm->rank == rank; });
    if (!came) ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
  }
  return "rank " + ranks + " has not issued it";
}

std::string waits_for(const Part& part) {
  const std::vector<PartPointer> there = partners(part);
  std::string text = text_of(part) + ": ";
  if (there.size() < all_partners(part)) return text + missing(part, there);
  for (const PartPointer& other : there) {
    if (other.get() == &part || is_active(*other)) continue;
    const OperationPointer owner = other->owner.lock();
    return text + text_of(*other) +
           (owner == nullptr || owner->done ? " was dropped" : " is behind " + head_of(*owner));
  }
  return text + "all are there";
}

using OwnParts = std::shared_ptr<std::vector<PartPointer>>;

// Parts with their numbers.
OwnParts issue_parts(const std::vector<Part>& prototypes) {
  auto parts = std::make_shared<std::vector<PartPointer>>();
  for (const Part& prototype : prototypes) {
    const auto part = std::make_shared<Part>(prototype);
    register_part(part);
    parts->push_back(part);
    if (part->comm->clique->board != nullptr) part->comm->clique->board->announce(*part);
  }
  return parts;
}

void keep_for(ncclComm& comm, const OperationPointer& operation) {
  std::erase_if(comm.operations, [](const std::weak_ptr<Operation>& o) {
    const OperationPointer p = o.lock();
    return p == nullptr || p->done;
  });
  comm.operations.push_back(operation);
}

// Puts parts on the board, for other processes.
OperationPointer make_leaving(const OwnParts& parts) {
  auto operation = std::make_shared<Operation>();
  operation->what = text_of(*parts->front()) + ", for other processes";
  for (const PartPointer& part : *parts)
    for (const Access& access : accesses_of(*part))
      if (!access.writes) operation->accesses.push_back(access);
  operation->run = [parts] {
    for (const PartPointer& part : *parts) {
      const bool to_itself = is_transfer(*part) && part->peer == part->comm->rank;
      if (!to_itself) part->comm->clique->board->leave(*part);
      part->active = true;
    }
    ++progress();
  };
  keep_for(*parts->front()->comm, operation);
  return operation;
}

OperationPointer make_operation(const OwnParts& parts) {
  auto operation = std::make_shared<Operation>();
  const bool has_board = parts->front()->comm->clique->board != nullptr;
  for (const PartPointer& part : *parts) {
    part->owner = operation;
    for (const Access& access : accesses_of(*part)) operation->accesses.push_back(access);
  }
  double sent = 0;
  double received = 0;
  for (const PartPointer& part : *parts) {
    const auto bytes = static_cast<double>(part->count * bytes_of(part->type));
    if (part->kind != Kind::receive) sent += bytes;
    if (part->kind != Kind::send) received += bytes;
  }
  operation->timed_bytes = std::max(sent, received);
  operation->what = text_of(*parts->front());
  if (parts->size() > 1) operation->what += " and " + std::to_string(parts->size() - 1) + " more";
  operation->ready = [parts, has_board] {
    for (const PartPointer& part : *parts) {
      if (has_board) break;  // they were left there by the operation before
      if (!part->active) ++progress();
      part->active = true;
    }
    return std::all_of(parts->begin(), parts->end(),
                       [](const PartPointer& part) { return can_complete(*part); });
  };
  operation->run = [parts] {
    for (const PartPointer& part : *parts) {
      if (part->done) continue;
      if (is_transfer(*part))
        complete_transfer(part);
      else
        complete_collective(part);
    }
  };
  operation->needs = [parts] {
    std::vector<Operation*> needed;
    for (const PartPointer& part : *parts) {
      if (part->done) continue;
      for (const PartPointer& other : partners(*part)) {
        const OperationPointer owner = other->owner.lock();
        if (owner != nullptr && !owner->done) needed.push_back(owner.get());
      }
    }
    return needed;
  };
  operation->waits_for = [parts] {
    std::string text;
    for (const PartPointer& part : *parts) {
      if (!can_complete(*part)) text += (text.empty() ? "" : "; ") + waits_for(*part);
    }
    return text;
  };
  keep_for(*parts->front()->comm, operation);
  return operation;
}

}  // namespace

std::size_t bytes_of(ncclDataType_t type) {
  static constexpr std::size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return sizes[static_cast<std::size_t>(type)];
}

std::string text_of(const Part& part) {
  std::string text = "rank " + std::to_string(part.comm->rank) + " " + name(part.kind) + " #" +
                     std::to_string(part.number) + " of " + std::to_string(part.count) + " " +
                     name(part.type);
  if (part.kind == Kind::send) text += " to rank " + std::to_string(part.peer);
  if (part.kind == Kind::receive) text += " from rank " + std::to_string(part.peer);
  if (reduces(part)) text += std::string(" by ") + name(part.op);
  if (has_root(part)) text += " with root " + std::to_string(part.peer);
  return text;
}

void enqueue_parts(cudaStream_t handle, const std::vector<Part>& parts) {
  Stream* const stream = stream_of(handle);
  const ncclComm& comm = *parts.front().comm;
  if (device_of(*stream) != comm.device)
    die("a communicator of device " + std::to_string(comm.device) + " on a stream of device " +
        std::to_string(device_of(*stream)));
  if (comm.clique->board == nullptr) {
    enqueue(stream, [parts] { return make_operation(issue_parts(parts)); });
    return;
  }
  const auto own = std::make_shared<OwnParts>();
  enqueue(stream, [parts, own] {
    *own = issue_parts(parts);
    return make_leaving(*own);
  });
  enqueue(stream, [own] { return make_operation(*own); });
}

void drop(ncclComm& comm) {
  std::vector<OperationPointer> own;
  for (const std::weak_ptr<Operation>& weak : comm.operations) {
    if (OperationPointer operation = weak.lock()) own.push_back(std::move(operation));
  }
  drop_operations([&](const Operation& operation) {
    return std::any_of(own.begin(), own.end(),
                       [&](const OperationPointer& o) { return o.get() == &operation; });
  });
  // Peers do not meet them any more.
  const auto withdraw = [&](Parts& parts) {
    for (auto& entry : parts) {
      if (entry.second->comm == &comm && !entry.second->buffered) entry.second->owner.reset();
    }
  };
  for (auto& entry : comm.clique->sends) withdraw(entry.second);
  for (auto& entry : comm.clique->receives) withdraw(entry.second);
  for (auto& entry : comm.clique->collectives) withdraw(entry.second);
  comm.operations.clear();
  ++progress();
}

std::size_t& buffered_bytes() {
  static std::size_t bytes = 0;
  return bytes;
}

}  // namespace cuda_on_host::nccl
