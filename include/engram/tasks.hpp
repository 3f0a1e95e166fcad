#pragma once
// SPDX-License-Identifier: MIT

// Every environment and every sequence, with what they are drawn by. One of them alone is a header of engram/task.
//
// Their lists by name instantiate each of them, and are included by name: <engram/task/registry.hpp>,
// <engram/task/sequence_registry.hpp>, <engram/task/time_step.hpp>.

#include <engram/task/add_marked.hpp>
#include <engram/task/arbitrary_visuomotor_mapping.hpp>
#include <engram/task/bit_copy.hpp>
#include <engram/task/canvas.hpp>
#include <engram/task/change_detection.hpp>
#include <engram/task/continuous_recognition.hpp>
#include <engram/task/copy_sequences.hpp>
#include <engram/task/digit_map.hpp>
#include <engram/task/environment.hpp>
#include <engram/task/first_person.hpp>
#include <engram/task/gallery.hpp>
#include <engram/task/gaze.hpp>
#include <engram/task/glyph_data.hpp>
#include <engram/task/glyph_sequence.hpp>
#include <engram/task/glyphs.hpp>
#include <engram/task/goal_arena.hpp>
#include <engram/task/grid_path.hpp>
#include <engram/task/maze_generator.hpp>
#include <engram/task/motion_pattern.hpp>
#include <engram/task/panel.hpp>
#include <engram/task/permuted_mnist.hpp>
#include <engram/task/played_episodes.hpp>
#include <engram/task/plugged.hpp>
#include <engram/task/popgym/autoencode.hpp>
#include <engram/task/popgym/battleship.hpp>
#include <engram/task/popgym/cards.hpp>
#include <engram/task/popgym/cart_pole.hpp>
#include <engram/task/popgym/concentration.hpp>
#include <engram/task/popgym/count_recall.hpp>
#include <engram/task/popgym/game.hpp>
#include <engram/task/popgym/higher_lower.hpp>
#include <engram/task/popgym/labyrinth.hpp>
#include <engram/task/popgym/mine_sweeper.hpp>
#include <engram/task/popgym/multiarmed_bandit.hpp>
#include <engram/task/popgym/pendulum.hpp>
#include <engram/task/popgym/repeat_first.hpp>
#include <engram/task/popgym/repeat_previous.hpp>
#include <engram/task/procedural_maze.hpp>
#include <engram/task/psychlab.hpp>
#include <engram/task/ray_caster.hpp>
#include <engram/task/recall_sequences.hpp>
#include <engram/task/recognition_level.hpp>
#include <engram/task/room.hpp>
#include <engram/task/rotation.hpp>
#include <engram/task/sequence.hpp>
#include <engram/task/sequence_stream.hpp>
#include <engram/task/sight.hpp>
#include <engram/task/solids.hpp>
#include <engram/task/sought_goal.hpp>
#include <engram/task/spot_diff.hpp>
#include <engram/task/spot_diff_rooms.hpp>
#include <engram/task/stimulus.hpp>
#include <engram/task/stimulus_data.hpp>
#include <engram/task/stroke_glyphs.hpp>
#include <engram/task/strokes.hpp>
#include <engram/task/suite_colours.hpp>
#include <engram/task/suite_level.hpp>
#include <engram/task/t_maze.hpp>
#include <engram/task/texture.hpp>
#include <engram/task/transitive_inference.hpp>
#include <engram/task/two_colors.hpp>
#include <engram/task/what_then_where.hpp>
