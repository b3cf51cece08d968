#include "trace/file_reader.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace fallow::trace {

namespace {

/// A trace of more files opens each when it reads from it: a replay has several readers of a trace.
constexpr std::size_t kHeldFiles = 8;

bool by_cpu(const ChunkFile& f) noexcept { return f.head().clock == static_cast<std::uint32_t>(ComputeClock::cpu); }

}  // namespace

TraceReader::TraceReader(const std::vector<std::string>& paths) {
  for (const std::string& p : paths) {
    files_.push_back(std::make_unique<ChunkFile>(p));
    files_.back()->hold(paths.size() <= kHeldFiles);
  }
  open_all();
}

TraceReader::TraceReader(std::vector<std::unique_ptr<ChunkFile>> files) : files_(std::move(files)) { open_all(); }

void TraceReader::open_all() {
  if (files_.empty()) throw TraceFileError("(no file)", 0, "a trace needs at least one file");
  const FileHead& first = files_[0]->head();
  info_.start_wall_ns = first.start_wall_ns;
  for (const auto& f : files_) {
    if (f->head().world_size != first.world_size) {
      f->refuse(offsetof(FileHead, world_size), "a run of " + std::to_string(f->head().world_size) + " ranks; " + files_[0]->name() + " has " + std::to_string(first.world_size));
    }
    info_.start_wall_ns = std::min(info_.start_wall_ns, f->head().start_wall_ns);
    if (by_cpu(*f)) info_.clock = ComputeClock::cpu;
  }
  if (const auto odd = std::find_if(files_.begin(), files_.end(), [&](const auto& f) { return by_cpu(*f) != by_cpu(*files_[0]); }); odd != files_.end()) {
    problems_.push_back((*odd)->name() + ": computation by " + (by_cpu(**odd) ? "CPU" : "wall") + " clock, unlike that of " + files_[0]->name());
  }
  info_.ranks.resize(first.world_size);
  info_.comms = CommGroups(first.world_size);
  blocks_.resize(first.world_size);
  cursors_.resize(first.world_size);
  single_.resize(first.world_size);
  last_.resize(first.world_size);
  shift_.resize(first.world_size);
  outcomes_.resize(first.world_size);
  owner_.assign(first.world_size, -1);
  for (RankInfo& r : info_.ranks) r.complete = false;
  definition_chunks_.resize(files_.size());
  definitions_ = std::make_unique<Definitions>(info_);
  for (std::uint32_t i = 0; i < files_.size(); ++i) {
    files_[i]->hold(true);
    read_file(i);
    files_[i]->hold(files_.size() <= kHeldFiles);
  }
  finish();
}

void TraceReader::read_file(std::uint32_t file) {
  const ChunkFile& f = *files_[file];
  if (const auto index = f.index()) {
    take_index(file, *index);
    return;
  }
  try {
    scan(file, sizeof(FileHead), f.size());
  } catch (const TraceFileError& e) {
    // A killed rank leaves half a chunk at the end: what is before it counts.
    if (owner_.empty() || std::find(owner_.begin(), owner_.end(), static_cast<std::int64_t>(file)) == owner_.end()) throw;
    problems_.push_back(std::string(e.what()) + "; the rest of the file is left out");
  }
}

void TraceReader::scan(std::uint32_t file, std::uint64_t from, std::uint64_t to) {
  for (std::uint64_t at = from; at < to;) {
    const auto chunk = files_[file]->chunk_at(at);
    if (!chunk) return;
    take_chunk(file, *chunk);
    at = chunk->end();
  }
}

void TraceReader::take_index(std::uint32_t file, const std::vector<IndexEntry>& index) {
  const ChunkFile& f = *files_[file];
  std::uint64_t begin = f.index_offset(), end = sizeof(FileHead);
  for (const IndexEntry& e : index) {
    begin = std::min(begin, e.offset);
    end = std::max(end, e.offset + sizeof(ChunkHead) + e.bytes);
  }
  scan(file, sizeof(FileHead), begin);
  for (const IndexEntry& e : index) {
    const auto chunk = e.offset < f.index_offset() ? f.chunk_at(e.offset) : std::nullopt;
    if (!chunk || chunk->type != ChunkType::events || chunk->bytes != e.bytes) f.refuse(e.offset, "the index names a block that is not there");
    take_chunk(file, *chunk);
  }
  if (!index.empty()) scan(file, end, f.index_offset());
}

void TraceReader::take_chunk(std::uint32_t file, const Chunk& chunk) {
  const ChunkFile& f = *files_[file];
  if (chunk.type == ChunkType::index) {
    f.read(chunk);  // that it is one: a chunk whose kind is damaged is not to be passed over
    return;
  }
  try {
    if (chunk.type == ChunkType::events) {
      std::array<std::byte, sizeof(BlockHead)> bytes{};
      f.peek(chunk, bytes);
      take_block(file, chunk, read_block_head(bytes, chunk.bytes));
    } else {
      take_definition(file, chunk);
    }
  } catch (const BlockError& e) {
    f.refuse(chunk.offset + sizeof(ChunkHead) + e.offset(), e.what());
  } catch (const DefinitionError& e) {
    f.refuse(chunk.offset + sizeof(ChunkHead), e.what());
  }
}

void TraceReader::take_definition(std::uint32_t file, const Chunk& chunk) {
  const auto payload = files_[file]->read(chunk);
  definition_chunks_[file].push_back(chunk);
  if (chunk.type == ChunkType::comm) return definitions_->comm(payload);
  if (chunk.type == ChunkType::site) return definitions_->site(payload);
  if (chunk.type == ChunkType::end) {
    const auto end = definitions_->end(payload);
    info_.ranks[end.rank].complete = true;
    info_.ranks[end.rank].dropped += end.dropped;
    info_.ranks[end.rank].left_out += end.left_out;
    return;
  }
  const auto text = definitions_->rank(payload);
  if (owner_[text.rank] >= 0) {
    const std::string& other = files_[static_cast<std::size_t>(owner_[text.rank])]->name();
    throw DefinitionError("rank " + std::to_string(text.rank) + " stands in " + other + " too: only parts of one trace go together");
  }
  owner_[text.rank] = file;
  shift_[text.rank] = text.shift_ns + (files_[file]->head().start_wall_ns - info_.start_wall_ns);
  info_.ranks[text.rank].host = text.host;
  if (info_.program.empty()) info_.program = text.program;
  if (info_.mpi_version.empty()) info_.mpi_version = text.mpi_version;
}

void TraceReader::take_block(std::uint32_t file, const Chunk& chunk, const BlockHead& h) {
  if (h.rank >= blocks_.size() || owner_[h.rank] != file) throw BlockError(0, "a block of rank " + std::to_string(h.rank) + ", which this file does not define");
  const std::uint64_t shift = shift_[h.rank];
  if ((h.flags & kBlockOutcomes) != 0) outcomes_[h.rank] = true;
  blocks_[h.rank].push_back({file, chunk, h.rank, h.events, h.dropped, h.thread, h.first_event, h.first_ns + shift, h.last_ns + shift});
}

void TraceReader::finish() {
  std::uint64_t left_out = 0;
  for (const RankInfo& r : info_.ranks) left_out += r.left_out;
  if (left_out != 0) {
    problems_.push_back("cut out of a longer trace, without " + std::to_string(left_out) + (left_out == 1 ? " call" : " calls") +
                        " of it; only the whole one can be replayed as it was");
  }
  for (std::uint32_t r = 0; r < blocks_.size(); ++r) {
    finish_rank(r);
    open_cursors(r, 0);
  }
}

void TraceReader::finish_rank(std::uint32_t rank) {
  auto& blocks = blocks_[rank];
  std::stable_sort(blocks.begin(), blocks.end(), [](const BlockPlace& a, const BlockPlace& b) {
    return a.thread != b.thread ? a.thread < b.thread : a.first_event < b.first_event;
  });
  RankInfo& info = info_.ranks[rank];
  info.first_ns = blocks.empty() ? 0 : ~std::uint64_t{0};
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const BlockPlace& b = blocks[i];
    info.events += b.events;
    info.dropped += b.dropped;
    info.first_ns = std::min(info.first_ns, b.first_ns);
    info.last_ns = std::max(info.last_ns, b.last_ns);
    const bool follows = i > 0 && blocks[i - 1].thread == b.thread;
    if (i > 0 && !follows) ++info.threads;
    if (follows && (b.first_event != blocks[i - 1].first_event + blocks[i - 1].events || b.first_ns < blocks[i - 1].last_ns)) {
      files_[b.file]->refuse(b.chunk.offset, "the blocks of rank " + std::to_string(rank) + " do not follow each other");
    }
  }
}

void TraceReader::seek(std::uint32_t rank, std::uint64_t ns) { open_cursors(rank, ns); }

void TraceReader::open_cursors(std::uint32_t rank, std::uint64_t ns) {
  auto& cursors = cursors_[rank];
  const auto& blocks = blocks_[rank];
  last_[rank] = nullptr;
  single_[rank].next = single_[rank].end = 0;
  if (cursors.empty()) {
    for (std::uint32_t i = 0; i < blocks.size(); ++i) {
      if (i == 0 || blocks[i].thread != blocks[i - 1].thread) cursors.push_back(std::make_unique<Cursor>());
      cursors.back()->blocks.push_back(i);
    }
    single_[rank].cursor = cursors.size() == 1 ? cursors[0].get() : nullptr;
    for (const auto& c : cursors) c->shift_ns = shift_[rank], c->sites = definitions_->sites_of(rank);
  }
  for (const auto& c : cursors) {
    const auto first = std::partition_point(c->blocks.begin(), c->blocks.end(), [&](std::uint32_t b) { return blocks[b].last_ns < ns; });
    c->next_block = static_cast<std::size_t>(first - c->blocks.begin());
    c->open = c->loaded = false;
  }
}

/// What `some` gives of the cursor's block, or of the next that has any; else nothing.
template <class Decode>
auto TraceReader::decode(std::uint32_t rank, Cursor& c, Decode&& some) -> decltype(some()) {
  const auto place = [&]() -> const BlockPlace& { return blocks_[rank][c.blocks[c.next_block - 1]]; };
  try {
    for (;;) {
      if (c.open) {
        if (const auto got = some()) return got;
      }
      c.open = false;
      if (c.next_block == c.blocks.size()) return {};
      ++c.next_block;
      c.decoder.begin(files_[place().file]->read(place().chunk, c.decoder.take_buffer()));
      c.open = true;
    }
  } catch (const BlockError& e) {
    files_[place().file]->refuse(place().chunk.offset + sizeof(ChunkHead) + e.offset(), e.what());
  }
}

/// From the rank's own numbers to the trace's.
void TraceReader::localize(std::uint32_t rank, const Cursor& c, CallEvent& event) const noexcept {
  event.comm = definitions_->comm_of(rank, event.comm);
  event.site = event.site - 1 < c.sites.size() ? c.sites[event.site - 1] : definitions_->site_of(rank, event.site);
}

bool TraceReader::advance(std::uint32_t rank, Cursor& c, CallEvent& event) {
  if (!decode(rank, c, [&] { return c.decoder.next(event); })) return false;
  event.enter_ns += c.shift_ns;
  event.exit_ns += c.shift_ns;
  localize(rank, c, event);
  return true;
}

void TraceReader::leave_out_times(bool out) {
  without_times_ = out;
  if (!out || !calls_.empty()) return;
  ready_ = blocks_.size() <= kManyRanks ? 512 : 256;
  calls_.resize(std::size_t{ready_} * blocks_.size());
}

bool TraceReader::decode_calls(std::uint32_t rank) {
  Cursor& c = *single_[rank].cursor;
  struct Numbers final : ShapeNumbers {
    TraceReader& reader;
    std::uint32_t rank;
    const Cursor& cursor;
    bool odd = false;  ///< the last one, which ends the row
    Numbers(TraceReader& r, std::uint32_t number, const Cursor& c) : reader(r), rank(number), cursor(c) {}
    std::uint32_t number_of(const CallEvent& event) override {
      CallEvent global = event;
      reader.localize(rank, cursor, global);
      const std::uint32_t number = reader.shapes_.number_of(rank, global);
      odd = number == 0;
      return number;
    }
  } numbers(*this, rank, c);
  const std::span calls(&calls_[std::size_t{rank} * ready_], ready_);
  const std::size_t count = decode(rank, c, [&] { return c.decoder.next_calls(calls, numbers, c.event); });
  single_[rank].next = 0;
  single_[rank].end = static_cast<std::uint16_t>(count);
  if (numbers.odd) localize(rank, c, c.event);
  return count != 0;
}

void TraceReader::give(std::uint32_t rank, const std::uint32_t* place, CallEvent& event) const noexcept {
  const PackedCall call = PackedCall::unpack(place);
  if (call.number == 0) [[unlikely]] {
    event = single_[rank].cursor->event;
    return;
  }
  const CallShapes::Shape& kind = shapes_[call.number];
  const CallEvent& shape = kind.call;
  event.op = shape.op, event.flags = shape.flags, event.thread = shape.thread;
  event.comm = shape.comm, event.site = shape.site;
  event.tag = shape.tag, event.recv_tag = shape.recv_tag, event.root = shape.root;
  event.bytes = shape.bytes, event.recv_bytes = shape.recv_bytes;
  event.counts = shape.counts, event.recv_counts = shape.recv_counts;
  event.requests = shape.requests, event.completed = shape.completed;
  event.peer = kind.peer_of(rank), event.recv_peer = kind.recv_peer_of(rank);
  event.compute_ns = call.compute_ns;
  if (call.own_peers) [[unlikely]] event.peer = call.peer, event.recv_peer = call.recv_peer;
}

void TraceReader::again(std::uint32_t rank, CallEvent& event) {
  const Single& single = single_[rank];
  if (single.cursor == nullptr) {
    event = last_[rank]->event;
  } else {
    give(rank, calls_of(rank) + single.last, event);
  }
}

bool TraceReader::next(std::uint32_t rank, CallEvent& event) {
  Single& single = single_[rank];
  if (single.cursor != nullptr) [[likely]] {
    if (single.next == single.end) {
      if (!without_times_) return advance(rank, *single.cursor, event);
      if (!decode_calls(rank)) return false;
    }
    const std::uint32_t* const place = calls_of(rank) + single.next;
    single.last = single.next;
    single.next = static_cast<std::uint16_t>(single.next + PackedCall::places(place));
    give(rank, place, event);
    return true;
  }
  auto& cursors = cursors_[rank];
  // Several threads: look one event ahead in each and give out the earliest.
  for (const auto& c : cursors) {
    const bool spent = !c->loaded && (c.get() == last_[rank] || last_[rank] == nullptr);
    if (spent) c->loaded = advance(rank, *c, c->event);
  }
  Cursor* first = nullptr;
  for (const auto& c : cursors) {
    if (c->loaded && (first == nullptr || c->event.enter_ns < first->event.enter_ns)) first = c.get();
  }
  if (first == nullptr) return false;
  event = first->event;
  first->loaded = false;
  last_[rank] = first;
  return true;
}

void TraceReader::prefetch(std::uint32_t rank, unsigned step) const noexcept {
  constexpr std::uint32_t kLine = 64, kCalls = 20;  // places of so many of them
  const Single& single = single_[rank];
  if (step == 0) return __builtin_prefetch(&single, 1);
  if (single.cursor == nullptr || calls_.empty()) return;
  const std::uint32_t* next = calls_of(rank) + single.next;
  const std::uint32_t left = single.end - std::uint32_t{single.next};
  if (step == 3) return __builtin_prefetch(next);
  if (step == 2) {
    if (left < kCalls) single.cursor->decoder.prefetch();
    return;
  }
  __builtin_prefetch(next);
  if (left >= kCalls) return __builtin_prefetch(next + kCalls - 1);
  const auto bring = [](const void* from, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; i += kLine) __builtin_prefetch(static_cast<const char*>(from) + i, 1);
  };
  bring(single.cursor, sizeof(Cursor));
  bring(calls_of(rank), ready_ * sizeof(calls_[0]));
}

std::uint64_t TraceReader::stored_bytes() const noexcept {
  std::uint64_t n = 0;
  for (const auto& f : files_) n += f->size();
  return n;
}

}  // namespace fallow::trace
