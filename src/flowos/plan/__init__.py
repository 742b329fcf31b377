"""Pure decisions: what to run, when to stop, what to trust. No clock, no files."""

from typing import TYPE_CHECKING

from flowos._lazy import lazily

_PARTS = {
    "_acceptance": "BaselineCheck CheckAnswer NumberCheck checked",
    "_baseline_numbers": "CHECK_ERROR MAX_TOLERANCE MIN_RUNS baseline_numbers tolerance_with "
    "unjudged_numbers",
    "_change_points": "CHANGE_ERROR MIN_HISTORY NumberChange NumberHistory number_changes",
    "_repeated": "MachineRun",
    "_residence": "with_resident_arrays",
    "_slow_machines": "MIN_MACHINES SLOW_ERROR SlowLimit SlowMachine SlowMachines slow_machines",
    "_compare": "LOOKS compare",
    "_choices": "max_choices with_needs",
    "_deployments": "DeploymentSpread spreads",
    "_devices": "DevicePicture choose_device",
    "_engine_copies": "whole_plan",
    "_engines": "TRIES Engines TriedEngines next_engines planned",
    "_intervals": "wilson",
    "_sample_size": "rounds_to_decide",
    "_machines": "ORPHAN_SECONDS left_over next_try nonce_at orphans superseded without_machine",
    "_growth": "MAX_FAILURES GrowthStep GrowthView NodeRange growth_step why_no_node",
    "_order": "drawn",
    "_placement": (
        "MapPlaces NodePicture choose_node cores_needed devices_needed gpus_needed lacking_time "
        "map_first map_share memory_needed nodes_by_switch tasks_within topology_notes"
    ),
    "_geomean_verdict": "GEOMEAN geomean_verdict",
    "_regimes": "Regimes regimes",
    "_rounds": "judged narrowed next_round one_round turns",
    "_compile": "Fuse compile_flow",
    "_schedule": "Schedule Step Stage",
    "_unpaired": "UNPAIRED Numbers RunsOutcome by_probe outcome side_by_side",
    "_aa_simulation": "NoiseModel SimulatedMachine Stalls simulate",
    "_spread": "spread",
    "_steps": "CacheStep Plateau find_plateaus find_steps memory_plateau",
    "_energy": "PER_JOULE per_joule",
    "_usual": "MIN_OTHERS HistoryPoint NumberPlace place_among",
    "_summary": "ABOVE_CEILING no_ceiling no_nominal summarize",
    "_trust": "NOISE_THRESHOLDS NoiseThresholds assess_trust limits_for",
}

if TYPE_CHECKING:
    from flowos.plan._acceptance import (
        BaselineCheck as BaselineCheck,
        CheckAnswer as CheckAnswer,
        NumberCheck as NumberCheck,
        checked as checked,
    )
    from flowos.plan._baseline_numbers import (
        CHECK_ERROR as CHECK_ERROR,
        MAX_TOLERANCE as MAX_TOLERANCE,
        MIN_RUNS as MIN_RUNS,
        baseline_numbers as baseline_numbers,
        tolerance_with as tolerance_with,
        unjudged_numbers as unjudged_numbers,
    )
    from flowos.plan._change_points import (
        CHANGE_ERROR as CHANGE_ERROR,
        MIN_HISTORY as MIN_HISTORY,
        NumberChange as NumberChange,
        NumberHistory as NumberHistory,
        number_changes as number_changes,
    )
    from flowos.plan._repeated import (
        MachineRun as MachineRun,
    )
    from flowos.plan._slow_machines import (
        MIN_MACHINES as MIN_MACHINES,
        SLOW_ERROR as SLOW_ERROR,
        SlowLimit as SlowLimit,
        SlowMachine as SlowMachine,
        SlowMachines as SlowMachines,
        slow_machines as slow_machines,
    )
    from flowos.plan._compare import (
        LOOKS as LOOKS,
        compare as compare,
    )
    from flowos.plan._choices import max_choices as max_choices, with_needs as with_needs
    from flowos.plan._deployments import (
        DeploymentSpread as DeploymentSpread,
        spreads as spreads,
    )
    from flowos.plan._devices import (
        DevicePicture as DevicePicture,
        choose_device as choose_device,
    )
    from flowos.plan._engine_copies import whole_plan as whole_plan
    from flowos.plan._engines import (
        TRIES as TRIES,
        Engines as Engines,
        TriedEngines as TriedEngines,
        next_engines as next_engines,
        planned as planned,
    )
    from flowos.plan._intervals import (
        wilson as wilson,
    )
    from flowos.plan._sample_size import (
        rounds_to_decide as rounds_to_decide,
    )
    from flowos.plan._machines import (
        ORPHAN_SECONDS as ORPHAN_SECONDS,
        left_over as left_over,
        next_try as next_try,
        nonce_at as nonce_at,
        orphans as orphans,
        superseded as superseded,
        without_machine as without_machine,
    )
    from flowos.plan._growth import (
        MAX_FAILURES as MAX_FAILURES,
        GrowthStep as GrowthStep,
        GrowthView as GrowthView,
        NodeRange as NodeRange,
        growth_step as growth_step,
        why_no_node as why_no_node,
    )
    from flowos.plan._order import (
        drawn as drawn,
    )
    from flowos.plan._placement import (
        MapPlaces as MapPlaces,
        NodePicture as NodePicture,
        choose_node as choose_node,
        cores_needed as cores_needed,
        devices_needed as devices_needed,
        gpus_needed as gpus_needed,
        lacking_time as lacking_time,
        map_first as map_first,
        map_share as map_share,
        memory_needed as memory_needed,
        nodes_by_switch as nodes_by_switch,
        tasks_within as tasks_within,
        topology_notes as topology_notes,
    )
    from flowos.plan._geomean_verdict import (
        GEOMEAN as GEOMEAN,
        geomean_verdict as geomean_verdict,
    )
    from flowos.plan._regimes import (
        Regimes as Regimes,
        regimes as regimes,
    )
    from flowos.plan._residence import (
        with_resident_arrays as with_resident_arrays,
    )
    from flowos.plan._rounds import (
        judged as judged,
        narrowed as narrowed,
        next_round as next_round,
        one_round as one_round,
        turns as turns,
    )
    from flowos.plan._compile import (
        Fuse as Fuse,
        compile_flow as compile_flow,
    )
    from flowos.plan._schedule import (
        Schedule as Schedule,
        Step as Step,
        Stage as Stage,
    )
    from flowos.plan._unpaired import (
        UNPAIRED as UNPAIRED,
        Numbers as Numbers,
        RunsOutcome as RunsOutcome,
        by_probe as by_probe,
        outcome as outcome,
        side_by_side as side_by_side,
    )
    from flowos.plan._aa_simulation import (
        NoiseModel as NoiseModel,
        SimulatedMachine as SimulatedMachine,
        Stalls as Stalls,
        simulate as simulate,
    )
    from flowos.plan._spread import (
        spread as spread,
    )
    from flowos.plan._steps import (
        CacheStep as CacheStep,
        Plateau as Plateau,
        find_plateaus as find_plateaus,
        find_steps as find_steps,
        memory_plateau as memory_plateau,
    )
    from flowos.plan._energy import (
        PER_JOULE as PER_JOULE,
        per_joule as per_joule,
    )
    from flowos.plan._usual import (
        MIN_OTHERS as MIN_OTHERS,
        HistoryPoint as HistoryPoint,
        NumberPlace as NumberPlace,
        place_among as place_among,
    )
    from flowos.plan._summary import (
        ABOVE_CEILING as ABOVE_CEILING,
        no_ceiling as no_ceiling,
        no_nominal as no_nominal,
        summarize as summarize,
    )
    from flowos.plan._trust import (
        NOISE_THRESHOLDS as NOISE_THRESHOLDS,
        NoiseThresholds as NoiseThresholds,
        assess_trust as assess_trust,
        limits_for as limits_for,
    )
else:
    __getattr__, __dir__, __all__ = lazily(__name__, _PARTS)
