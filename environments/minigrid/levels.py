"""Names of the levels of MiniGrid and BabyAI, which need no package."""

from coach_rl.core.errors import UnknownNameError

MINIGRID = (
    "BlockedUnlockPickup",
    "LavaCrossingS9N1",
    "LavaCrossingS9N2",
    "LavaCrossingS9N3",
    "LavaCrossingS11N5",
    "SimpleCrossingS9N1",
    "SimpleCrossingS9N2",
    "SimpleCrossingS9N3",
    "SimpleCrossingS11N5",
    "DistShift1",
    "DistShift2",
    "DoorKey-5x5",
    "DoorKey-6x6",
    "DoorKey-8x8",
    "DoorKey-16x16",
    "Dynamic-Obstacles-5x5",
    "Dynamic-Obstacles-Random-5x5",
    "Dynamic-Obstacles-6x6",
    "Dynamic-Obstacles-Random-6x6",
    "Dynamic-Obstacles-8x8",
    "Dynamic-Obstacles-16x16",
    "Empty-5x5",
    "Empty-Random-5x5",
    "Empty-6x6",
    "Empty-Random-6x6",
    "Empty-8x8",
    "Empty-16x16",
    "Fetch-5x5-N2",
    "Fetch-6x6-N2",
    "Fetch-8x8-N3",
    "FourRooms",
    "GoToDoor-5x5",
    "GoToDoor-6x6",
    "GoToDoor-8x8",
    "GoToObject-6x6-N2",
    "GoToObject-8x8-N2",
    "KeyCorridorS3R1",
    "KeyCorridorS3R2",
    "KeyCorridorS3R3",
    "KeyCorridorS4R3",
    "KeyCorridorS5R3",
    "KeyCorridorS6R3",
    "LavaGapS5",
    "LavaGapS6",
    "LavaGapS7",
    "LockedRoom",
    "MemoryS17Random",
    "MemoryS13Random",
    "MemoryS13",
    "MemoryS11",
    "MemoryS9",
    "MemoryS7",
    "MultiRoom-N2-S4",
    "MultiRoom-N4-S5",
    "MultiRoom-N6",
    "ObstructedMaze-1Dl",
    "ObstructedMaze-1Dlh",
    "ObstructedMaze-1Dlhb",
    "ObstructedMaze-2Dl",
    "ObstructedMaze-2Dlh",
    "ObstructedMaze-2Dlhb",
    "ObstructedMaze-1Q",
    "ObstructedMaze-2Q",
    "ObstructedMaze-Full",
    "Playground",
    "PutNear-6x6-N2",
    "PutNear-8x8-N3",
    "RedBlueDoors-6x6",
    "RedBlueDoors-8x8",
    "Unlock",
    "UnlockPickup",
)
"""The levels of MiniGrid 3.2 (Chevalier-Boisvert et al. 2023, arXiv:2306.13831), but for those of
wave function collapse, whose patterns are not in its package."""
BABYAI = (
    "GoToRedBallGrey",
    "GoToRedBall",
    "GoToRedBallNoDists",
    "GoToObj",
    "GoToObjS4",
    "GoToObjS6",
    "GoToLocal",
    "GoToLocalS5N2",
    "GoToLocalS6N2",
    "GoToLocalS6N3",
    "GoToLocalS6N4",
    "GoToLocalS7N4",
    "GoToLocalS7N5",
    "GoToLocalS8N2",
    "GoToLocalS8N3",
    "GoToLocalS8N4",
    "GoToLocalS8N5",
    "GoToLocalS8N6",
    "GoToLocalS8N7",
    "GoTo",
    "GoToOpen",
    "GoToObjMaze",
    "GoToObjMazeOpen",
    "GoToObjMazeS4R2",
    "GoToObjMazeS4",
    "GoToObjMazeS5",
    "GoToObjMazeS6",
    "GoToObjMazeS7",
    "GoToImpUnlock",
    "GoToSeq",
    "GoToSeqS5R2",
    "GoToRedBlueBall",
    "GoToDoor",
    "GoToObjDoor",
    "Open",
    "OpenRedDoor",
    "OpenDoor",
    "OpenDoorDebug",
    "OpenDoorColor",
    "OpenDoorLoc",
    "OpenTwoDoors",
    "OpenRedBlueDoors",
    "OpenRedBlueDoorsDebug",
    "OpenDoorsOrderN2",
    "OpenDoorsOrderN4",
    "OpenDoorsOrderN2Debug",
    "OpenDoorsOrderN4Debug",
    "Pickup",
    "UnblockPickup",
    "PickupLoc",
    "PickupDist",
    "PickupDistDebug",
    "PickupAbove",
    "PutNextLocal",
    "PutNextLocalS5N3",
    "PutNextLocalS6N4",
    "PutNextS4N1",
    "PutNextS5N2",
    "PutNextS5N1",
    "PutNextS6N3",
    "PutNextS7N4",
    "PutNextS5N2Carrying",
    "PutNextS6N3Carrying",
    "PutNextS7N4Carrying",
    "Unlock",
    "UnlockLocal",
    "UnlockLocalDist",
    "KeyInBox",
    "UnlockPickup",
    "UnlockPickupDist",
    "BlockedUnlockPickup",
    "UnlockToUnlock",
    "ActionObjDoor",
    "FindObjS5",
    "FindObjS6",
    "FindObjS7",
    "KeyCorridor",
    "KeyCorridorS3R1",
    "KeyCorridorS3R2",
    "KeyCorridorS3R3",
    "KeyCorridorS4R3",
    "KeyCorridorS5R3",
    "KeyCorridorS6R3",
    "OneRoomS8",
    "OneRoomS12",
    "OneRoomS16",
    "OneRoomS20",
    "MoveTwoAcrossS5N2",
    "MoveTwoAcrossS8N9",
    "Synth",
    "SynthS5R2",
    "SynthLoc",
    "SynthSeq",
    "MiniBossLevel",
    "BossLevel",
    "BossLevelNoUnlock",
)
"""The levels of BabyAI (Chevalier-Boisvert et al. 2019, arXiv:1810.08272)."""
SECOND = (
    "MultiRoom-N4-S5",
    "ObstructedMaze-2Dlhb",
    "ObstructedMaze-1Q",
    "ObstructedMaze-2Q",
    "ObstructedMaze-Full",
)
"""Levels of which there are two versions, of which a short name is the second. The first one of
MultiRoom-N4-S5 has six rooms, those of ObstructedMaze have missions that don't fit."""
ONLY_SECOND = ("BabyAI-GoToObjS6",)
"""Levels of which there is the second version alone."""


def _ids() -> dict[str, str]:
    """The newest id of each short name."""
    newest = {*SECOND, *ONLY_SECOND}
    short = (*MINIGRID, *(f"BabyAI-{name}" for name in BABYAI))
    return {
        name: f"{'' if name.startswith('BabyAI-') else 'MiniGrid-'}{name}-v{int(name in newest)}"
        for name in short
    }


SHORT_NAMES = _ids()
"""The registered id of each level by its short name, such as MultiRoom-N4-S5 or BabyAI-GoToLocal;
of its newest version."""
IDS = (*SHORT_NAMES.values(), *(f"MiniGrid-{name}-v0" for name in SECOND))
"""All registered ids."""
PREFIX = "minigrid:"
"""May stand before any name of a level."""


def level_id(name: str) -> str:
    """The registered id of a level.

    Args:
        name: A short name, `DoorKey-8x8`, that with a version, `DoorKey-8x8-v0`, or an id,
            `MiniGrid-DoorKey-8x8-v0`; with or without `minigrid:` before it.

    Raises:
        UnknownNameError: There is no such level.
    """
    plain = name.removeprefix(PREFIX)
    for each in (SHORT_NAMES.get(plain), plain, f"MiniGrid-{plain}"):
        if each in IDS:
            return each
    newest = SHORT_NAMES.get(plain.removeprefix("MiniGrid-"))
    if newest is not None:
        return newest
    why = "levels of wave function collapse lack their patterns in the package" * ("WFC" in plain)
    raise UnknownNameError("level of MiniGrid", name, SHORT_NAMES, why)
