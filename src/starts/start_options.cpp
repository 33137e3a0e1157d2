#include "unshuffle/starts/start_options.hpp"

namespace unshuffle {

void StartChoice::assign(const OptionText& text, const OptionValue& given) {
  if (const auto* list = std::get_if<std::vector<double>>(&given)) {
    kind = StartKind::user;
    parameters = Eigen::Map<const Vector>(list->data(), static_cast<Index>(list->size()));
    return;
  }
  detail::assign(kind, text, given);
  parameters.resize(0);
}

OptionValue StartChoice::value() const {
  if (kind == StartKind::user) return std::vector<double>(parameters.begin(), parameters.end());
  return std::string(name_of(kind));
}

}  // namespace unshuffle
