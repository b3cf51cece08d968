// Whether who ends a wait also ends the sleep in it, as far as is seen.
#pragma once

namespace fallow::pmpi {

/// Trusts as long as of the latest ends of sleeps less than a share `few` came in another way.
class Trust {
 public:
  /// `first`: that share before anything was seen.
  constexpr Trust(double few, double first) noexcept : few_(few), untold_(first) {}

  void tell(bool told) noexcept { untold_ += ((told ? 0.0 : 1.0) - untold_) / kMemory; }
  bool holds() const noexcept { return untold_ < few_; }

 private:
  static constexpr double kMemory = 8;
  double few_, untold_;
};

}  // namespace fallow::pmpi
