// Feed: the integers that differ between runs of a graph that is kept: rows of look-ups, words of attributes.
//
// They are noted when the graph has been made, before anything runs: nodes with such integers must not be merged
// because they happen to be alike now. Checks are those of the ops as they were made, whatever became of them since.
// Who may include: bindings/. Includes: graph/graph.h.
#pragma once
#include "graph/graph.h"

namespace dnl {

class Feed {
 public:
  // Word `at` of the member attributes of a node, or row `at` of a look-up, is integer number `index`. Notes of one
  // node follow one another. from_end: rows below zero count from the end.
  void note(Graph& g, NodeId node, u32 at, u32 index, bool from_end);
  // Once the graph has been rewritten: nobody refers to these rows any more, so that their gradients go straight to the
  // table's.
  void rewritten(Graph& g);
  // Puts the integers in their places; the caller forgets what was computed, and Graph::refresh() finds the rows before
  // anything runs. Throws Error(Index) as the op would; then some are in their places and others not, but the graph can
  // run.
  void give(Graph& g, const i32* ints);

 private:
  struct Fed {
    NodeId node;
    bool row, from_end;
    u32 sig;          // that it was made with
    u32 dims, nargs;  // of its arguments then, in dims_
    u32 begin, end;   // in places_
  };
  struct Place {
    u32 at, index;
  };
  void give_rows(Graph& g, const Fed& fed, const i32* ints);
  void give_words(Graph& g, const Fed& fed, const i32* ints);

  Vec<Fed> fed_;
  Vec<Place> places_;
  Vec<u32> dims_;
  Vec<Word> before_;
  Vec<const Dim*> shapes_;
};

}  // namespace dnl
