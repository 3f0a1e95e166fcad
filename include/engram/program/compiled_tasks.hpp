#pragma once
// SPDX-License-Identifier: MIT

// The environments and sequences of the registries, compiled once in engram_compiled: whatever asks for a task by its
// name would otherwise hold all of them, and half of its compile time would be theirs.
//
// One that is missing here is compiled where it is used, as everywhere else.

#include <engram/task/registry.hpp>
#include <engram/task/sequence_registry.hpp>

// Defined by the one source file that compiles them.
#ifdef ENGRAM_COMPILE_TASKS
#define ENGRAM_EXTERN
#else
#define ENGRAM_EXTERN extern
#endif

namespace engram {

ENGRAM_EXTERN template registered_task register_task<arbitrary_visuomotor_mapping>();
ENGRAM_EXTERN template registered_task register_task<continuous_recognition>();
ENGRAM_EXTERN template registered_task register_task<change_detection>();
ENGRAM_EXTERN template registered_task register_task<what_then_where>();
ENGRAM_EXTERN template registered_task register_task<spot_diff>();
ENGRAM_EXTERN template registered_task register_task<spot_diff_passive>();
ENGRAM_EXTERN template registered_task register_task<spot_diff_multi>();
ENGRAM_EXTERN template registered_task register_task<spot_diff_motion>();
ENGRAM_EXTERN template registered_task register_task<visible_goal_with_buildings>();
ENGRAM_EXTERN template registered_task register_task<invisible_goal_with_buildings>();
ENGRAM_EXTERN template registered_task register_task<invisible_goal_empty_arena>();
ENGRAM_EXTERN template registered_task register_task<procedural_maze>();
ENGRAM_EXTERN template registered_task register_task<transitive_inference>();
ENGRAM_EXTERN template registered_task register_task<t_maze>();
ENGRAM_EXTERN template registered_task register_task<two_colors>();
ENGRAM_EXTERN template registered_task register_task<popgym::repeat_first>();
ENGRAM_EXTERN template registered_task register_task<popgym::repeat_previous>();
ENGRAM_EXTERN template registered_task register_task<popgym::autoencode>();
ENGRAM_EXTERN template registered_task register_task<popgym::count_recall>();
ENGRAM_EXTERN template registered_task register_task<popgym::higher_lower>();
ENGRAM_EXTERN template registered_task register_task<popgym::concentration>();
ENGRAM_EXTERN template registered_task register_task<popgym::battleship>();
ENGRAM_EXTERN template registered_task register_task<popgym::mine_sweeper>();
ENGRAM_EXTERN template registered_task register_task<popgym::multiarmed_bandit>();
ENGRAM_EXTERN template registered_task register_task<popgym::stateless_cart_pole>();
ENGRAM_EXTERN template registered_task register_task<popgym::noisy_stateless_cart_pole>();
ENGRAM_EXTERN template registered_task register_task<popgym::stateless_pendulum>();
ENGRAM_EXTERN template registered_task register_task<popgym::noisy_stateless_pendulum>();
ENGRAM_EXTERN template registered_task register_task<popgym::labyrinth_escape>();
ENGRAM_EXTERN template registered_task register_task<popgym::labyrinth_explore>();

ENGRAM_EXTERN template registered_sequence register_sequence<recall_task<perfect_recall>>();
ENGRAM_EXTERN template registered_sequence register_sequence<recall_task<parity_recall>>();
ENGRAM_EXTERN template registered_sequence register_sequence<recall_task<one_shot_recall>>();
ENGRAM_EXTERN template registered_sequence register_sequence<recall_task<dynamic_dependency>>();
ENGRAM_EXTERN template registered_sequence register_sequence<recall_task<similarity_cued_recall>>();
ENGRAM_EXTERN template registered_sequence register_sequence<digit_map>();
ENGRAM_EXTERN template registered_sequence register_sequence<rotation_task>();
ENGRAM_EXTERN template registered_sequence register_sequence<bit_copy>();
ENGRAM_EXTERN template registered_sequence register_sequence<copy_task<false>>();
ENGRAM_EXTERN template registered_sequence register_sequence<copy_task<true>>();
ENGRAM_EXTERN template registered_sequence register_sequence<add_marked>();
ENGRAM_EXTERN template registered_sequence register_sequence<permuted_mnist>();

}  // namespace engram

#undef ENGRAM_EXTERN
