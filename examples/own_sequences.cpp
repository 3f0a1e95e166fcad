// Trains an LSTM on examples/own_sequences.hpp, rows of a file of one's own: a whole program (train, evaluate,
// describe, sample) that knows the sequences by their name.
//
//   build/bin/example-own_sequences train --task csv_series --data FOLDER --steps 1000000

#include <engram/catalogue.hpp>
#include <engram/program/ablation.hpp>
#include <engram/task/sequence_registry.hpp>

#include "own_sequences.hpp"

// [main]
int main(int argc, char** argv) {
    engram::add_sequence<own::csv_series>();
    return engram::run_ablation<engram::catalogue::bptt_lstm>("bptt_lstm", argc, argv);
}
// [main]
