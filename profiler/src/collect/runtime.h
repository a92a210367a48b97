/* SPDX-License-Identifier: Apache-2.0
 *
 * The C interface of libopscope-core.so, the one collecting runtime of a process. The op observer,
 * the NVTX injection library, the Python module and the C++ front call it through this table and
 * never through symbols, so that a second copy of the core defers to the first one loaded.
 *
 * Hot path: functions marked (hot) take no lock, allocate nothing after a thread's first call, make
 * no system call, and do nothing while no session is on. Every function is noexcept.
 */
#ifndef OPSCOPE_COLLECT_RUNTIME_H
#define OPSCOPE_COLLECT_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OPSCOPE_RUNTIME_VERSION 1u

/* A name: either registered (handle != 0, from intern) or given as bytes that are copied. */
typedef struct opscope_name {
  const char* data;
  uint32_t size;
  uint32_t handle;
} opscope_name;

/* What a thread is doing, shared by the layers. Owned by the core; written by its thread alone. */
typedef struct opscope_thread {
  uint64_t frame;         /* innermost Python frame's id, 0: none. Written by the Python tracer */
  uint32_t frame_depth;   /* depth of that frame in the tracer's shadow stack, from 1; 0: none */
  uint32_t touched_depth; /* deepest frame under which an op, range or mark began: those frames and
                             their callers are recorded even in mode `entry`. Raised by other
                             layers to frame_depth, lowered by the tracer as frames return */
  uint32_t op_depth;      /* nesting of dispatcher ops. Written by the op observer */
  uint32_t os_id;         /* gettid() */
} opscope_thread;

typedef struct opscope_frame_event {
  uint64_t start_ns, end_ns, id, parent;
  opscope_name name, file;
  uint32_t line, flags; /* python_frame::* and span_flag::* of model/records.hpp */
  uint32_t thread; /* OS id; 0: the calling thread. Set for frames closed by a stop elsewhere */
  uint32_t reserved;
} opscope_frame_event;

/* One tensor argument or other input of an op. */
typedef struct opscope_argument {
  const int64_t* sizes; /* `rank` sizes; NULL: not a tensor */
  uint32_t rank;
  uint32_t list_item; /* 1: item of a tensor list argument that began before it, 0: an argument */
  const char* type;   /* "float", "c10::BFloat16", "Scalar", "": as Kineto writes `Input type` */
} opscope_argument;

typedef struct opscope_op_event {
  uint64_t start_ns, end_ns, id, python_frame;
  int64_t sequence;
  uint64_t forward_thread, logical_thread;
  uint64_t input_bytes, output_bytes;
  opscope_name name;
  const opscope_argument* arguments; /* NULL: not recorded */
  uint32_t argument_count;
  uint32_t flags;  /* op::* and span_flag::* of model/records.hpp */
  uint32_t thread; /* OS id; 0: the calling thread. Set for ops that ended or were cut elsewhere */
  uint32_t reserved;
} opscope_op_event;

typedef struct opscope_range_event {
  uint64_t start_ns, end_ns, id, payload;
  opscope_name name, domain, category;
  uint32_t color, payload_type, flags; /* range::* and span_flag::* of model/records.hpp */
  uint32_t thread, end_thread;         /* OS ids; 0: the calling thread */
} opscope_range_event;

/* What a session records. Zero-initialise; zero is the default of each field but `size`. */
enum { OPSCOPE_PYTHON_OFF = 0, OPSCOPE_PYTHON_ENTRY = 1, OPSCOPE_PYTHON_CALLS = 2 };
enum {
  OPSCOPE_DRAM_OFF = 0,
  OPSCOPE_DRAM_OPS = 1,
  OPSCOPE_DRAM_RANGES = 2 /* counter_begin only */
};

typedef struct opscope_session_options {
  uint32_t size;      /* sizeof(opscope_session_options) */
  const char* output; /* path of the capture; written as PATH.partial until closed */
  uint32_t force;     /* replace an existing output */
  uint32_t strict;    /* refuse to start when anything asked for cannot be recorded */
  uint32_t python;    /* OPSCOPE_PYTHON_* */
  uint32_t shapes;
  uint32_t dram;                            /* OPSCOPE_DRAM_* */
  uint32_t counter_capacity;                /* ranges before renewal, 0: 256 */
  uint64_t memory_bytes;                    /* limit of buffers, 0: 256 MiB */
  uint32_t wait_when_full;                  /* wait for the writer instead of dropping */
  uint32_t no_gpu, no_api, no_ops, no_nvtx; /* switch a layer off */
  /* Object merged into the session header: versions, argv, rank; may be NULL. */
  const char* metadata_json;
} opscope_session_options;

/* A collecting layer that starts and stops with the session (op observer, Python tracer, NVTX). */
typedef struct opscope_layer {
  const char* name; /* "ops", "python", "nvtx" */
  /* 0, or non-zero with a one-line reason in `error` (the session then goes on without). */
  int (*start)(const opscope_session_options* options, char* error, size_t error_size);
  void (*stop)(void);
} opscope_layer;

typedef struct opscope_runtime {
  uint32_t version; /* of this table */
  uint32_t size;    /* sizeof(opscope_runtime): newer fields are appended */

  /* --- hot --- */
  const uint32_t* recording; /* (hot) non-zero while a session is on; read relaxed */
  /* (hot) the calling thread's state; NULL: no memory left for it. */
  opscope_thread* (*thread)(void);
  uint64_t (*now)(void);     /* (hot) ns on the session's clock */
  uint64_t (*next_id)(void); /* (hot) a session-unique span id, never 0 */
  void (*frame)(const opscope_frame_event*);
  void (*op)(const opscope_op_event*);
  void (*range)(const opscope_range_event*);
  /* (hot) call mark of a comparison: just before and after a contender is called */
  void (*call_mark)(uint64_t start_ns, uint64_t end_ns, uint32_t cell, uint32_t contender,
                    uint32_t ordinal);
  /* a sample of a comparison; not hot, needs a session (paused or not) */
  void (*sample)(uint32_t metric, uint32_t cell, uint32_t contender, uint32_t ordinal,
                 int64_t value);
  /* Counter ranges of a session with dram != off. begin returns 1 when the range is open, 0 when it
   * is not measured (then do not call end). Works while the session is paused, so that a counter
   * pass stays out of the timeline; the counters are taken at the first begin. Not hot: ~20 us
   * each. */
  int (*counter_begin)(opscope_name name, uint32_t cell, uint32_t contender);
  void (*counter_end)(void);

  /* --- cold --- */
  /* Process-lifetime handle of a name, never 0. */
  uint32_t (*intern)(const char* data, size_t size);
  void (*account)(uint32_t outcome, const char* record, uint64_t count); /* adds to the ledger */
  void (*document)(const char* name, const char* json);                  /* adds a document */
  void (*warn)(const char* line); /* one-line warning: stderr once, and the capture */
  void (*register_layer)(const opscope_layer* layer); /* static lifetime; may come after a start */

  /* Starts a session: 0; 1 refused (error says why; nothing was changed): a session is on, the
   * output cannot be written, or strict and something is missing. What is merely missing is warned
   * about. */
  int (*session_start)(const opscope_session_options* options, char* error, size_t error_size);
  /* Ends the session, writes the footer, renames the file into place. 0, or 1 with the reason. */
  int (*session_stop)(char* error, size_t error_size);
  /* Pauses and resumes recording inside a session (schedules, counter passes): the layers stop, GPU
   * activity is switched off, the file stays open. */
  void (*session_pause)(void);
  void (*session_resume)(void);
  /* Writes all that was recorded so far to the file (GPU records included, after a device sync). */
  void (*session_flush)(void);
  /* Final path of the current or last capture; valid until the next start. */
  const char* (*session_path)(void);
  /* What this machine can record and, where it cannot, the fix: a JSON object for `doctor`. Touches
   * CUPTI. Valid until the next call. */
  const char* (*machine_json)(void);
  /* Was CUPTI ever touched in this process (its residue stays in launch times)? */
  int (*cupti_touched)(void);
  /* Names a thread of this process (nvtxNameOsThread); the last name wins. May be NULL. */
  void (*name_thread)(uint32_t os_id, const char* name);
  /* Takes CUPTI out of the process again, and its residue out of launch times. 0, also when CUPTI
   * was never touched; 1 with the reason: a session is on, or another tool holds CUPTI. */
  int (*detach)(char* error, size_t error_size);
} opscope_runtime;

/* The process's runtime, or NULL when this core does not serve `version`. The only export. */
__attribute__((visibility("default"))) const opscope_runtime* opscope_runtime_get(uint32_t version);

#ifdef __cplusplus
}
#endif
#endif
