# Overlapped steps: a backward pass and an update that run while the next graph is built (exec/overlap.h).
#
# The rule: everything calls settle() first, except what builds graphs. After settle() all is as if backward() and update()
# had run where they were called. What may go on without it is: nodes, dims, renewals; weights and single rows of tables
# that enter a graph, since a graph reads them when it runs; and values that a graph has computed.
#
# An update that needs what other processes have computed is put off likewise (put_off): settle() runs what is left of it.
import atexit
import os
import threading
import time as _time
import weakref

cdef extern from "exec/overlap.h" namespace "dnl":
    cdef enum class JobState(int):
        NoJob "dnl::JobState::None"
        Remembered
        Claimed
        Running
        Done
    cdef cppclass JobOutcome:
        UpdateOutcome update
        cbool failed()
        void rethrow() except +raise_python_error
    cbool job_pending() nogil
    JobState job_state() nogil
    cbool job_needs(const Executor*)
    cbool job_needs(const CUpdater*)
    cbool job_has_update()
    void remember_backward(Executor&, NodeId) except +raise_python_error
    void remember_update(CUpdater&, const UpdateStep&, double) except +raise_python_error
    void claim_job()
    cbool start_job(int) except +raise_python_error
    void finish_job() nogil
    JobOutcome take_outcome()

cdef extern from "base/wait.h" namespace "dnl":
    uint64_t times_lent_ "dnl::times_lent" () nogil

cdef extern from "exec/pool.h" namespace "dnl":
    cdef cppclass PassCounts:
        uint64_t several, one
    PassCounts pass_counts() nogil
    void force_threads_ "dnl::force_threads" (int) nogil

cdef extern from "exec/trial.h" namespace "dnl":
    cdef cppclass Trial:
        void begin_pass(long long, long long)
        void interrupt()
        cbool several()

cdef PyObject* _job_graph = NULL   # borrowed: the graph whose backward pass it is, until that goes
cdef object _job_trainer = None    # a weak reference to the trainer whose update it is
cdef bint _sees_end = False        # of the process
cdef int _n_graphs = 0             # graphs in the process: steps overlap only where there is one
cdef uint64_t _n_backwards = 0     # backward passes that were asked for
cdef uint64_t _n_begun = 0         # jobs that were begun in the background
cdef bint _ended = False           # the interpreter goes: no more jobs
cdef object _put_off = None        # a function: the rest of an update
cdef object _rest_lock = threading.RLock()   # held by who runs it; what it calls may settle
cdef object _rest_thread = None  # its number
cdef object _rest_error = None     # what it could not, where nobody could be told
cdef int _n_updating = 0           # updates that run without the GIL,
cdef int _n_passes = 0             # and passes over graphs
cdef bint _forking = False         # a thread is about to fork: no other begins a pass or an update
cdef object _forker = None         # its number
cdef uint64_t _n_forks = 0         # of this process and those that it comes from


cdef inline int settle() except -1:
    """From here on everything is as if no step overlapped with another, and no thread is updating. Raises what the job
    could not."""
    while job_pending():   # while we wait another thread may begin the next
        _settle()
    if _put_off is not None:
        _run_rest()
    if _n_updating:
        _wait_for_updates()
    return 0


cdef int _wait_for_updates() except -1:
    """What an update of another thread writes is not read meanwhile: the GIL goes until it has ended."""
    while _n_updating:
        _time.sleep(0)
    return 0


cdef inline bint settled():
    return not job_pending() and _put_off is None and not _n_updating


def put_off(rest):
    """Whoever looks at weights or gradients next calls rest() first, once, and gets the errors of it. It may settle itself.

    What was put off before must have run.
    """
    global _put_off
    settle()
    _see_end()
    _put_off = rest


cdef int _run_rest() except -1:
    global _put_off, _rest_thread, _rest_error
    if _rest_thread == threading.get_ident():
        return 0
    with _rest_lock:
        if _put_off is None:   # another thread was here in between
            return 0
        rest, error = _put_off, _rest_error
        _rest_thread = threading.get_ident()
        try:
            if error is not None:
                raise error
            rest()
        finally:
            _rest_thread = None
            _put_off = _rest_error = None
    return 0


cdef void _run_rest_quietly() noexcept:
    """Its error is told later."""
    global _put_off, _rest_error
    if _put_off is None:
        return
    rest = _put_off
    try:
        _run_rest()
    except BaseException as error:
        _put_off, _rest_error = rest, error


cdef int _settle() except -1:
    global _job_graph, _job_trainer
    cdef ComputationGraph g = <ComputationGraph> _job_graph if alive(_job_graph) else None
    if job_state() == JobState.Remembered:
        claim_job()
        if current_graph() != _job_graph or g is None:
            finish_job()   # with the GIL: its thread must not add nodes now
        else:
            g.busy = True
            _finish_without_gil()
            g.busy = False
    else:
        _finish_without_gil()
    if job_state() != JobState.Done:
        return 0   # another thread was here in between
    cdef bint other = g is not None and job_needs(g.other_x)
    cdef JobOutcome outcome = take_outcome()
    trainer = _job_trainer() if _job_trainer is not None else None
    _job_graph = NULL
    _job_trainer = None
    if other and not g.busy:
        g.forget_other()
    if trainer is not None:
        (<TrainerFields> trainer).update_done(outcome.update.norm, outcome.update.clipped, outcome.failed(), "overlap")
    outcome.rethrow()
    return 0


cdef inline int _let_fork() except -1:
    """Before a pass or an update: a thread that is about to fork goes first."""
    while _forking and _forker != threading.get_ident():   # its own functions for forks may run some
        _time.sleep(0)
    return 0


cdef inline int _begin_pass() except -1:
    """The GIL goes next. _end_pass() is to follow."""
    global _n_passes
    _let_fork()
    _n_passes += 1
    return 0


cdef inline void _end_pass() noexcept:
    global _n_passes
    _n_passes -= 1


cdef inline bint _holds_gil():
    """Does a pass keep the GIL? To give it back and take it again costs as much as ten small nodes."""
    return (_keeps_gil or is_only_thread()) and _n_watched == 0


cdef inline bint _is_alone():
    """Of a pass that keeps the GIL: can nobody use the weights meanwhile? Then they are not locked."""
    return is_only_thread() and not job_pending()


cdef void _finish_without_gil() noexcept:
    global _n_passes
    _n_passes += 1
    with nogil:
        finish_job()
    _end_pass()


cdef int _see_end() except -1:
    """The first step of the process tells that its end has to wait for it."""
    global _sees_end
    if not _sees_end:
        _sees_end = True
        atexit.register(_end)
    return 0


cdef int _remember(ComputationGraph g, NodeId loss) except -1:
    """The backward pass of a graph becomes the job."""
    global _job_graph
    _see_end()
    settle()
    while g.busy:   # another thread was let in, and runs it
        g._not_busy()
        settle()
    remember_backward(deref(g.x), loss)
    _job_graph = <PyObject*> g
    return 0


cdef void _forget_graph(ComputationGraph g) noexcept:
    """The graph goes, the job does not need it any more."""
    global _job_graph
    if _job_graph == <PyObject*> g:
        _job_graph = NULL


cdef void _finish() noexcept:
    """The job is done; what became of it is told later."""
    if job_state() == JobState.Remembered:
        claim_job()
    finish_job()


def _before_fork():
    """Nothing may run: the child would wait for ever for locks of threads that it does not have."""
    global _forking, _forker
    _let_fork()   # another goes first
    _finish()
    _run_rest_quietly()
    _forking, _forker = True, threading.get_ident()
    while _n_passes or _n_updating or (job_pending() and job_state() != JobState.Done):
        _time.sleep(0)
        _finish()


def _after_fork():
    global _forking
    _forking = False


def _after_fork_in_child():
    """Locks of Python that other threads may have held are new ones; see Compiled, too."""
    global _n_forks, _rest_lock, _rest_thread
    _after_fork()
    _n_forks += 1
    _rest_lock, _rest_thread = threading.RLock(), None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)


def _end():
    """At the end of the process. What the last step could not is an error of the program: its exit status says so."""
    global _ended
    _ended = True
    try:
        settle()
    except BaseException:
        _fail_at_end()


cdef int _fail_at_end() except -1:
    """An exception here would be printed, and the exit status be 0: the other exit functions run, then it is 1."""
    import sys
    sys.excepthook(*sys.exc_info())
    atexit.unregister(_end)
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass   # closed, or nobody reads it
    os._exit(1)


def steps_overlapped():
    """How many steps have gone on in the background since the process began."""
    return _n_begun


def times_lent():
    """How often a thread that waited lent its processor to one that had none."""
    return times_lent_()


def passes_by_threads():
    """Forward passes that might have used several threads: how many did, and how many ran on one (exec/trial.h)."""
    cdef PassCounts counts = pass_counts()
    return counts.several, counts.one


def force_threads(int threads):
    """From the next pass on so many threads work at once, whatever is measured; 0: what is measured decides. For tests."""
    force_threads_(threads)


def try_threads(passes):
    """Whether several threads are used after each pass, by a trial of its own. For tests.

    passes: for each the nanoseconds and the work since some beginning, or None where the trial is interrupted.
    """
    cdef Trial trial
    cdef long long time, work
    used = []
    for times in passes:
        if times is None:
            trial.interrupt()
        else:
            time, work = times
            trial.begin_pass(time, work)
        used.append(trial.several())
    return used


def settle_steps():
    """Everything is as if no step overlapped with another; what is Python and looks at trained numbers calls this first."""
    settle()
