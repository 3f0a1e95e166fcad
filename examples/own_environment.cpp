// Trains LSTM+MEM on examples/own_environment.hpp, an environment of one's own: a whole program (train, evaluate,
// describe, sample) that knows the task by its name. Chance is 0.5 of 1; after 300,000 steps three seeds
// reach 1.00, 1.00 and 0.97 (four seconds on a free core).
//
//   build/bin/example-own_environment train --task match_to_sample --learner.discount 0 --steps 300000

#include <engram/catalogue.hpp>
#include <engram/program/ablation.hpp>
#include <engram/task/registry.hpp>

#include "own_environment.hpp"

// [main]
int main(int argc, char** argv) {
    engram::add_task<own::match_to_sample>();
    return engram::run_ablation<engram::catalogue::lstm_mem>("lstm_mem", argc, argv);
}
// [main]
