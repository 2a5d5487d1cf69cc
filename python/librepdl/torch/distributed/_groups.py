"""A process group as librepdl.torch uses it: what moves bytes between its ranks, and the order in which its reductions run."""

import hashlib
import queue
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import PrefixStore

import librepdl

_Stream: Any = torch.cuda.Stream
#: Bytes of a call's description that ranks compare.
_DESCRIPTION = 256


def _described(call: str) -> torch.Tensor:
    """The description as bytes; where it is too long, its beginning and a digest of it."""
    raw = call.encode()
    if len(raw) > _DESCRIPTION:
        raw = raw[: _DESCRIPTION - 40] + b" ... " + hashlib.sha256(raw).hexdigest()[:32].encode()
    return torch.tensor(list(raw.ljust(_DESCRIPTION)), dtype=torch.uint8)


def _bytes(t: torch.Tensor) -> torch.Tensor:
    """Of a contiguous vector; one of a single element may have any stride."""
    return t.as_strided((t.numel(),), (1,)).view(torch.uint8)


class Ranks:
    """Moves elements between the ranks of a group, on the device that they are on. Every rank calls the same methods in the same order."""

    def __init__(self, group: Any) -> None:
        """group: a process group, or a backend of one; None: this process alone."""
        self._group, self.rank, self.size = group, 0 if group is None else group.rank(), 1 if group is None else group.size()
        self._seen: set[str] = set()

    def agree(self, call: str, device: torch.device, remember: bool = True) -> None:
        """ValueError on every rank unless all of them describe the call alike. On a GPU, where looking at an answer would wait for all
        that was launched before, a description is compared when it comes for the first time; remember=False: always."""
        if self.size == 1 or call in self._seen:
            return
        mine = _described(call).to(device)
        every = torch.empty(self.size * _DESCRIPTION, dtype=torch.uint8, device=device)
        self._group._allgather_base(every, mine).wait()
        found = [bytes(row).decode(errors="replace").rstrip() for row in every.view(self.size, _DESCRIPTION).tolist()]
        for other, said in enumerate(found):
            if said != found[self.rank]:
                raise ValueError(f"{call.partition(' ')[0]}: expected the same call on every rank of the group, got {found[self.rank]!r} on rank "
                                 f"{self.rank} and {said!r} on rank {other}")
        if remember and device.type != "cpu":
            self._seen.add(call)

    def exchange(self, pieces: torch.Tensor, give: list[int], take: list[int]) -> torch.Tensor:
        """Of a vector, the first give[0] elements to rank 0, the next give[1] to rank 1, ...; take[r] elements of rank r, in the order of
        ranks."""
        if self.size == 1:
            return pieces
        size = pieces.element_size()
        taken = pieces.new_empty(sum(take))
        self._group.alltoall_base(_bytes(taken), _bytes(pieces), [n * size for n in take], [n * size for n in give]).wait()
        return taken

    def gather(self, piece: torch.Tensor, into: torch.Tensor | None = None) -> torch.Tensor:
        """The ranks' vectors, all of one size, one behind the other; `into`: a contiguous vector for them."""
        if self.size == 1 and into is None:
            return piece
        whole = piece.new_empty(self.size * piece.numel()) if into is None else into
        if self.size == 1:
            whole.copy_(piece)
        elif whole.numel():
            self._group._allgather_base(_bytes(whole), _bytes(piece)).wait()
        return whole

    def gather_uneven(self, piece: torch.Tensor) -> list[torch.Tensor]:
        """The ranks' vectors, of any sizes. Waits for a GPU."""
        sizes = self.gather(torch.tensor([piece.numel()], device=piece.device)).tolist()
        longest = max(sizes)
        padded = piece.new_zeros(longest)
        padded[: piece.numel()] = piece
        return [row[:n] for row, n in zip(self.gather(padded).view(self.size, longest), sizes)]


class Group:
    """What belongs to a process group: ranks that no one else calls, on the CPU a thread that runs reductions in the order in which they
    were called. On a GPU they are launched by the caller, on a stream beside the current one."""

    def __init__(self, group: dist.ProcessGroup) -> None:
        self._group = group
        self._ranks = Ranks(group)
        self._on_cpu: list[Ranks] = []  # one, once it is needed
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] | None = None
        self._streams: dict[torch.device, Any] = {}

    def _start(self) -> None:
        """Connections of the CPU beside the user's, so that the thread's messages do not meet those of the user's own calls."""
        _, store = dist.distributed_c10d._world.pg_map.get(self._group, (None, None))
        backend = self._group._get_backend(torch.device("cpu"))
        if self._ranks.size > 1 and store is not None and backend.name() == "gloo":
            backend = dist.ProcessGroupGloo(PrefixStore("librepdl", store), self._ranks.rank, self._ranks.size, backend.options._timeout)
        self._on_cpu.append(Ranks(backend))
        jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        thread = threading.Thread(target=_work, args=(jobs, torch.get_num_threads()), daemon=True, name="librepdl reductions")
        thread.start()
        weakref.finalize(self, _stop, jobs, thread, self._on_cpu)  # at the end of the process, too
        self._jobs = jobs

    def submit(self, job: Callable[[Ranks], Any], device: torch.device, used: Sequence[torch.Tensor] = ()) -> "Handle":
        """Begins job(ranks), which reads and writes tensors of the device. `used`: those of them that nothing else keeps until it is done.
        NotImplementedError while a CUDA graph is captured."""
        if device.type == "cpu":
            if self._jobs is None:
                self._start()
            assert self._jobs is not None
            handle = Handle(job, self._on_cpu[0])
            self._jobs.put(handle.begin)
            return handle
        if torch.cuda.is_current_stream_capturing():
            raise NotImplementedError("librepdl.torch.distributed: expected no reduction while a CUDA graph is captured, since ranks compare their "
                                      "calls on the host, got one")
        if device not in self._streams:
            self._streams[device] = _Stream(device)
        stream = self._streams[device]
        stream.wait_stream(torch.cuda.current_stream(device))  # here: a future's callback has another current stream
        for t in used:
            t.record_stream(stream)
        handle = Handle(job, self._ranks, stream)
        handle.begin()
        return handle


#: Handles that nobody has waited for. Code in C++ holds no reference to what is Python's of them.
_open: set["Handle"] = set()


class Handle(dist.Work):
    """A reduction under way. wait() raises its error."""

    def __init__(self, job: Callable[[Ranks], Any], ranks: Ranks, stream: Any = None) -> None:
        """stream: of a GPU, where the job is launched; it waits for what the job reads already."""
        super().__init__()
        self._error: BaseException | None = None
        self._stream, self._launched = stream, None  # an event, once the job is launched
        self._begun: torch.futures.Future[None] = torch.futures.Future(devices=[] if stream is None else [stream.device])

        def launch() -> Any:
            if stream is None:
                return job(ranks)
            with torch.cuda.stream(stream):
                result = job(ranks)
            # Who takes the future, as DistributedDataParallel does, waits for the callback's stream, if there are tensors in the result.
            self._launched = stream.record_event()
            torch.cuda.current_stream(stream.device).wait_event(self._launched)
            return result

        def run(_: Any) -> Any:
            try:
                with torch.no_grad():
                    return launch()
            except BaseException as e:
                self._error = e
                raise

        self._done = self._begun.then(run)
        _open.add(self)

    def begin(self) -> None:
        self._begun.set_result(None)

    def wait(self, timeout: Any = None) -> bool:
        """True, or the error; on a GPU the current stream waits. The group's timeout is the one that counts."""
        _open.discard(self)
        try:
            self._done.wait()
        except RuntimeError:
            if self._error is not None:
                raise self._error from None
            raise
        if self._launched is not None:
            torch.cuda.current_stream(self._stream.device).wait_event(self._launched)
        return True

    def get_future(self) -> "torch.futures.Future[Any]":
        _open.discard(self)
        return self._done

    def is_completed(self) -> bool:
        return self._done.done() and (self._launched is None or self._launched.query())

    def is_success(self) -> bool:
        return self.is_completed() and self._error is None

    def exception(self) -> BaseException | None:
        return self._error

    def result(self) -> Any:
        """What the job gave; of a reduction its tensors."""
        self.wait()
        return self._done.value()


def _work(jobs: "queue.SimpleQueue[Callable[[], None] | None]", threads: int) -> None:
    with librepdl.context(threads=threads):
        while (job := jobs.get()) is not None:
            job()


def _stop(jobs: "queue.SimpleQueue[Callable[[], None] | None]", thread: threading.Thread, on_cpu: list[Ranks]) -> None:
    """Ends the thread, and those of the connections: Python's end would tear them out of C++, which aborts the process. A thread that waits for
    ranks which do not answer is left to the group's timeout."""
    jobs.put(None)
    if thread is not threading.current_thread():
        thread.join(timeout=5)
    on_cpu.clear()


_groups: "weakref.WeakKeyDictionary[dist.ProcessGroup, Group]" = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def group_of(group: dist.ProcessGroup | None) -> Group:
    """Of a process group, or of all processes."""
    if group is None:
        group = dist.distributed_c10d._get_default_group()
    with _lock:
        if group not in _groups:
            _groups[group] = Group(group)
        return _groups[group]
