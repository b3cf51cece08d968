// A short rest between two polls: tpause or mwaitx where the processor has one of them, else pause.
#pragma once

namespace fallow::pmpi {

/// What a rest between two polls is made of.
enum class Rest { pause, tpause, mwaitx };

/// The best that this processor and the system under it offer.
Rest choose_rest() noexcept;

/// Rests for at most about half a microsecond; `mwaitx` and `tpause` in a state that draws less power than polling.
void rest_briefly() noexcept;

}  // namespace fallow::pmpi
