"""The memory, and the triangle unit that reads it, cycle by cycle."""

from collections import deque
from dataclasses import dataclass
from enum import IntEnum

from abut.hardware.config import Machine
from abut.hardware.model import TRIANGLE_AXES
from abut.hardware.record_cache import RecordCache

MEMORY_QUEUE = 2  # outstanding requests for records; those for two triangles are always accepted
RECORDS = -1
TRIANGLE_VERDICT = 33  # cycles from the last beat of b to the verdict of the first axis


@dataclass(frozen=True)
class _Request:
    time: int  # earliest cycle of the first beat
    beats: int
    port: int  # RECORDS, or the triangle unit that asked
    on_chip: bool


class Memory:
    """A port of the memory: requests are answered in order, in bursts."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.requests: deque[_Request] = deque()
        self.beat = 0
        self.next_beat = 0

    def ready(self) -> bool:
        """Whether a request for a record is accepted in this cycle."""
        return sum(request.port == RECORDS for request in self.requests) < MEMORY_QUEUE

    def ask(self, cycle: int, port: int) -> None:
        """Request a record, or a triangle for a triangle unit."""
        beats = self.machine.beats if port == RECORDS else self.machine.triangle_beats
        self._append(cycle + self.machine.latency, beats, port)

    def ask_cache(self, cycle: int, cache: RecordCache, side: int, slot: int) -> int:
        """Request a record from the cache, and from the memory where it is absent; its bursts."""
        beats, delay, bursts = cache.request(side, slot)
        latency = self.machine.latency if bursts else 1
        self._append(cycle + delay + latency, beats, RECORDS, not bursts)
        return bursts

    def _append(self, time: int, beats: int, port: int, on_chip: bool = False) -> None:
        self.requests.append(_Request(time, beats, port, on_chip))

    def valid(self, cycle: int) -> bool:
        """Whether there is a beat in this cycle."""
        return bool(self.requests) and cycle >= max(self.requests[0].time, self.next_beat)

    def offers(self, cycle: int, port: int) -> bool:
        """Whether there is a beat for a port in this cycle."""
        return self.valid(cycle) and self.requests[0].port == port

    def take(self, cycle: int) -> bool:
        """Take the beat; True for the last beat of a request."""
        self.beat += 1
        self.next_beat = cycle + 1
        if self.beat == self.requests[0].beats:
            self.beat = 0
            self.requests.popleft()
            return True
        if self.beat % self.machine.burst_beats == 0 and not self.requests[0].on_chip:
            self.next_beat += self.machine.gap
        return False


class _State(IntEnum):
    IDLE = 0
    ASK_A = 1
    ASK_B = 2
    GET_A = 3
    GET_B = 4
    TEST = 5


class TriangleUnitModel:
    """State of a triangle unit; ``axis`` is the first that separates ``faces``."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.state = _State.IDLE
        self.faces = (0, 0)
        self.axis = 0
        self.done = 0  # cycle of the verdict

    @property
    def idle(self) -> bool:
        """Whether no test is under way."""
        return self.state == _State.IDLE

    @property
    def asking(self) -> bool:
        """Whether a triangle is requested in this cycle."""
        return self.state in (_State.ASK_A, _State.ASK_B)

    @property
    def receiving(self) -> bool:
        """Whether a beat is accepted in this cycle."""
        return self.state in (_State.GET_A, _State.GET_B)

    def start(self, faces: tuple[int, int], axis: int) -> None:
        """Start a test, whose result is known to the model."""
        self.faces, self.axis, self.state = faces, axis, _State.ASK_A

    def proceed(self, cycle: int, memory: Memory, granted: bool) -> bool:
        """Ask and receive; update the state at the end of a cycle; True when a test ends in it."""
        received = self.receiving and memory.offers(cycle, self.port) and memory.take(cycle)
        if granted:
            memory.ask(cycle, self.port)
        if granted or received:
            self.state = _State(self.state + 1)
            if self.state == _State.TEST:
                self.done = cycle + TRIANGLE_VERDICT + 2 * min(self.axis, TRIANGLE_AXES - 1)
        elif self.state == _State.TEST and cycle == self.done:
            self.state = _State.IDLE
            return True
        return False
