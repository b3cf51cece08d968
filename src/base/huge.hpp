// Memory in large pages where the system has them: who keeps something of thousands of ranks would miss the address
// translation's cache with nearly every access otherwise.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <new>
#include <vector>

namespace fallow {

inline constexpr std::size_t kHugePage = std::size_t{1} << 21;

/// For std::vector: what is at least one large page is aligned to one.
template <class T>
struct HugeAllocator {
  using value_type = T;
  HugeAllocator() = default;
  template <class U>
  HugeAllocator(const HugeAllocator<U>&) noexcept {}

  T* allocate(std::size_t n) {
    const std::size_t bytes = n * sizeof(T);
    const bool huge = bytes >= kHugePage;
    const std::size_t align = huge ? kHugePage : (alignof(T) > 64 ? alignof(T) : 64);
    void* p = std::aligned_alloc(align, (bytes + align - 1) / align * align);
    if (p == nullptr) throw std::bad_alloc();
    if (huge) madvise(p, bytes, MADV_HUGEPAGE);
    return static_cast<T*>(p);
  }
  void deallocate(T* p, std::size_t) noexcept { std::free(p); }
  bool operator==(const HugeAllocator&) const noexcept { return true; }
};

template <class T>
using HugeVector = std::vector<T, HugeAllocator<T>>;

}  // namespace fallow
