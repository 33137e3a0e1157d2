#include "large/shared_passes.hpp"

namespace unshuffle::large {

using transport::CellGrid;
using transport::CompressionRule;
using transport::Range;

namespace {

void put(Message& message, const CompressionRule& rule) {
  message.put(rule.box_width);
  message.put(rule.cell_width);
  message.put(rule.order);
  message.put(rule.grid_order);
  message.put(rule.narrow_at);
  message.put(rule.box_factor);
  message.put(rule.cell_factor);
}

CompressionRule rule_from(Message& message) {
  CompressionRule rule;
  rule.box_width = message.number();
  rule.cell_width = message.number();
  rule.order = static_cast<int>(message.number());
  rule.grid_order = static_cast<int>(message.number());
  rule.narrow_at = message.list();
  rule.box_factor = message.list();
  rule.cell_factor = message.list();
  return rule;
}

void put(Message& message, const SharedPasses::Grid& grid) {
  message.put(grid.range.low);
  message.put(grid.range.high);
  put(message, grid.rule);
}

CellGrid grid_from(Message& message) {
  const double low = message.number(), high = message.number();
  return {Range{low, high}, rule_from(message)};
}

}  // namespace

Message SharedPasses::request(Request what, Side side, const Vector& w) {
  Message message;
  message.put(static_cast<double>(what));
  message.put(side == Side::response ? 0 : 1);
  message.put(w);
  return message;
}

std::vector<double> SharedPasses::answer(Message question) const {
  const auto what = static_cast<Request>(question.number());
  const Side side = question.number() == 0 ? Side::response : Side::feature;
  const Vector w = question.vector();
  std::vector<double> said;
  auto say = [&](const auto& values) { said.insert(said.end(), values.reshaped().begin(), values.reshaped().end()); };
  switch (what) {
    case Request::finish:
      break;
    case Request::compress: {
      const Atoms atoms = own_.compress(side, w, rule_from(question));
      Message message;
      if (atoms.position.empty()) break;  // this process has no rows of that side
      message.put(atoms.range.low);
      message.put(atoms.range.high);
      message.put(atoms.position);
      message.put(atoms.weight);
      said = std::move(message.values());
      break;
    }
    case Request::differentiate: {
      const CellGrid grid = grid_from(question);
      const Matrix gradient = question.table(), slope = question.table();
      const Derivatives found = own_.differentiate(side, w, grid, {gradient, slope});
      say(found.gradient);
      say(found.hessian);
      say(found.moments);
      break;
    }
    case Request::matched: {
      const CellGrid grid = grid_from(question);
      said.push_back(own_.matched(side, w, grid, question.table()));
      break;
    }
    case Request::partner_sums: {
      const CellGrid grid = grid_from(question);
      const Matrix potential = question.table();
      const Vector positions = question.vector();
      say(own_.partner_sums(side, w, grid, potential, {positions, question.number()}));
      break;
    }
    case Request::mixture_sums: {
      MixtureState state;
      state.noise_variance = question.number();
      state.mismatch_rate = question.number();
      state.other.low = question.number();
      state.other.step = question.number();
      state.other.logs = question.vector();
      const MixtureSums sums = own_.mixture_sums(w, state);
      said = {sums.log_likelihood, sums.links, sums.open, sums.squares};
      say(sums.right);
      say(sums.matrix);
      say(sums.doubt);
      say(sums.scores);
      break;
    }
  }
  return said;
}

void SharedPasses::add_up_or_line_up(Request what, std::vector<double>& answers) {
  if (what == Request::compress)
    answers = team_.gather(std::move(answers));
  else if (what != Request::finish)
    team_.sum(answers);
}

std::vector<double> SharedPasses::ask(Message& question) {
  ++passes_;
  team_.broadcast(question.values());
  std::vector<double> answers = answer(question);
  add_up_or_line_up(static_cast<Request>(question.number()), answers);
  return answers;
}

void SharedPasses::serve() {
  for (;;) {
    Message question;
    team_.broadcast(question.values());
    const auto what = static_cast<Request>(Message(question).number());
    if (what == Request::finish) return;
    std::vector<double> answers = answer(std::move(question));
    add_up_or_line_up(what, answers);
  }
}

void SharedPasses::finish() {
  Message question = request(Request::finish, Side::response, Vector());
  (void)ask(question);
}

Atoms SharedPasses::compress(Side side, const Vector& w, const CompressionRule& rule) {
  Message question = request(Request::compress, side, w);
  put(question, rule);
  Message answers(ask(question));
  Atoms all;
  while (!answers.ended()) {
    const double low = answers.number(), high = answers.number();
    const bool first = all.position.empty();
    all.range = {first ? low : std::min(all.range.low, low), first ? high : std::max(all.range.high, high)};
    const std::vector<double> position = answers.list(), weight = answers.list();
    all.position.insert(all.position.end(), position.begin(), position.end());
    all.weight.insert(all.weight.end(), weight.begin(), weight.end());
  }
  return all;
}

Derivatives SharedPasses::differentiate(Side side, const Vector& w, const Grid& grid, const Functions& functions) {
  Message question = request(Request::differentiate, side, w);
  put(question, grid);
  question.put(functions.gradient);
  question.put(functions.slope);
  const std::vector<double> sums = ask(question);
  const Index p = w.size();
  Derivatives found;
  found.gradient = Eigen::Map<const Vector>(sums.data(), p);
  if (functions.slope.size() == 0) return found;
  found.hessian = Eigen::Map<const Matrix>(sums.data() + p, p, p);
  found.moments = Eigen::Map<const Matrix>(sums.data() + p + p * p, functions.slope.size(), p);
  return found;
}

double SharedPasses::matched(Side side, const Vector& w, const Grid& grid, const Matrix& log_ratio) {
  Message question = request(Request::matched, side, w);
  put(question, grid);
  question.put(log_ratio);
  return ask(question).front();
}

Vector SharedPasses::partner_sums(Side side, const Vector& w, const Grid& grid, const Matrix& potential,
                                  const Targets& targets) {
  Message question = request(Request::partner_sums, side, w);
  put(question, grid);
  question.put(potential);
  question.put(targets.position);
  question.put(targets.epsilon);
  const std::vector<double> sums = ask(question);
  return Eigen::Map<const Vector>(sums.data(), static_cast<Index>(sums.size()));
}

MixtureSums SharedPasses::mixture_sums(const Vector& w, const MixtureState& state) {
  Message question = request(Request::mixture_sums, Side::feature, w);
  for (const double value : {state.noise_variance, state.mismatch_rate, state.other.low, state.other.step})
    question.put(value);
  question.put(state.other.logs);
  const std::vector<double> sums = ask(question);
  const Index p = w.size();
  MixtureSums found;
  found.log_likelihood = sums[0];
  found.links = sums[1];
  found.open = sums[2];
  found.squares = sums[3];
  const double* at = sums.data() + 4;
  auto next = [&](Index rows, Index columns) {
    Matrix table = Eigen::Map<const Matrix>(at, rows, columns);
    at += rows * columns;
    return table;
  };
  found.right = next(p, 1);
  found.matrix = next(p, p);
  found.doubt = next(p + 2, p + 2);
  found.scores = next(p + 2, p + 2);
  return found;
}

}  // namespace unshuffle::large
