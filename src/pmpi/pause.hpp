// A short rest between two polls: tpause where the processor has it, else pause.
#pragma once

namespace fallow::pmpi {

/// Rests for at most about half a microsecond.
void rest_briefly() noexcept;

}  // namespace fallow::pmpi
