"""Data model: frozen dataclasses and their checks. Standard library only, no side effects."""

from typing import TYPE_CHECKING

from flowos._lazy import lazily

_PARTS = {
    "_baseline": "Baseline BaselineNumber MachineKind UnjudgedNumber",
    "_boot": "read_boot",
    "_bodies": "Command Either Gang In NativeCode Out PortSpec Python Word engine_of",
    "_cloud": "Cloud CloudAction CloudRefusal RefusalKind Vm VmOrder tag_values",
    "_codec": "from_plain to_json to_plain",
    "_composite_ports": (
        "Choice Complex Composite DictOf ListOf ObjectOf OneOf TupleOf complex64 complex128"
    ),
    "_define": "task",
    "_define_commands": "command gang",
    "_define_control": "cond loop",
    "_deployment": "DeployedNode Deployment",
    "_device": "XVC Bitstream DeviceKind DeviceOwner DeviceRecord DeviceState Fpga NodeDevice",
    "_either": "either",
    "_engine_array": "EngineArray on_host",
    "_engine_flow": "EngineFlow EngineSite with_chosen with_engines",
    "_engine_plan": "HOST ChosenEngines EnginePlan PlannedCopy PlannedTask SiteNote",
    "_errors": (
        "Cancelled CloudError DeviceError EngineMissing EnvironmentRefused FeedError FlowosError "
        "LaunchFailed MeasureError NoRetry NoStoreError RoundLimitExceeded SampleError "
        "SettingsError SliceFreed SliceRefused SolveError StoreError TaskFailed TimeLimitExceeded "
        "UnknownDevice UnknownImage UnknownName UnknownRecord UsageError ValueRefused WiringError "
        "WorkerLost"
    ),
    "_extents": "Extents AxisRef PortIncompatible bind_extents",
    "_facts": (
        "Blas Cache Compiler CudaDevice Facts FileSystemFacts LogicalCpu Memory Missing Mpi "
        "NumaNode RdmaPort Tool Tried"
    ),
    "_fake_script": "FakeStep read_script",
    "_file_parts": "has_files with_files",
    "_graph": "Body Call Cond Constant Flow Loop Port Task flow_input flow_output",
    "_launch": (
        "BARE CUDA MPIS Argv Boot Counts CpuTimes DeviceNumbers End Environment Exited Form "
        "Image ImageConfig Killed Launch LinuxKernel Lost MpiName Needs NotStarted "
        "Outcome Pairs RuntimeFailed Usage with_choices"
    ),
    "_names": "counted did_you_mean",
    "_native_ports": "NATIVE_DTYPES NativePorts dtype_of native_ports shape_of",
    "_native_types": "NativeEntry",
    "_ports": (
        "Array DeviceArray File Floating Integer PortType any_ array bool_ brief_repr bytes_ "
        "float16 float32 float64 int8 int16 int32 int64 str_ uint8 uint16 uint32 uint64"
    ),
    "_pool": "LOCAL Ask NodeInfo Pool PoolKind Price StorageTier Topology",
    "_pool_use": "PoolStorage PoolUser StorageSpeed",
    "_process": "Process SliceUse",
    "_progress": "OnProgress Progress",
    "_roofline": "Roof Roofline RooflineKernel",
    "_run": "Entered ListedRun Run",
    "_run_result": "RunResult",
    "_samples": (
        "EQUAL_MARGIN RUNS_MARGIN Advice Answer Binary Case Chart Design Effort MachineState "
        "Measurement Reading Sample Share Trust Unmeasured Verdict MeasurementRequest "
        "lower_is_better"
    ),
    "_schema": "schema_of",
    "_settings": (
        "Settings cloud_fields fpga_fields pool_fields read_layers read_settings settings_schema "
        "size_fields"
    ),
    "_settings_layers": (
        "SaidSetting SettingsLayer file_layer merged options_layer said_settings unused_variables "
        "variables_layer"
    ),
    "_slice_record": "HeldNode SliceAccounts SliceEvent SliceRecord SliceState",
    "_source_code": (
        "SourceCode alternatives files_of first_error headers_of included_names is_source_text "
        "language_of misses_c_abi quoted_words"
    ),
    "_streams": "CYCLES_A_BEAT HdlDesign HdlStream MIN_CYCLES STREAM_DTYPES streams_of",
    "_suite": "FigurePart Paper PaperFigure PaperSuite PublishedMachine PublishedNumber SuiteStep",
    "_task_log": "LoggedTask SliceLog",
    "_vm_size": "Promise VmSize",
    "_waiting_task": "WaitingTask",
    "_wiring": "needs_of",
    "_work_sizes": "WorkSize group_sizes group_incompatibility work_sizes",
}

if TYPE_CHECKING:
    from flowos.model._baseline import Baseline as Baseline, BaselineNumber as BaselineNumber
    from flowos.model._baseline import MachineKind as MachineKind, UnjudgedNumber as UnjudgedNumber
    from flowos.model._boot import read_boot as read_boot
    from flowos.model._bodies import (
        Command as Command,
        Either as Either,
        Gang as Gang,
        In as In,
        NativeCode as NativeCode,
        Out as Out,
        PortSpec as PortSpec,
        Python as Python,
        Word as Word,
        engine_of as engine_of,
    )
    from flowos.model._cloud import (
        Cloud as Cloud,
        CloudAction as CloudAction,
        CloudRefusal as CloudRefusal,
        RefusalKind as RefusalKind,
        Vm as Vm,
        VmOrder as VmOrder,
        tag_values as tag_values,
    )
    from flowos.model._codec import (
        from_plain as from_plain,
        to_json as to_json,
        to_plain as to_plain,
    )
    from flowos.model._composite_ports import (
        Choice as Choice,
        Complex as Complex,
        Composite as Composite,
        DictOf as DictOf,
        ListOf as ListOf,
        ObjectOf as ObjectOf,
        OneOf as OneOf,
        TupleOf as TupleOf,
        complex64 as complex64,
        complex128 as complex128,
    )
    from flowos.model._define import task as task
    from flowos.model._define_commands import command as command, gang as gang
    from flowos.model._define_control import cond as cond, loop as loop
    from flowos.model._deployment import DeployedNode as DeployedNode, Deployment as Deployment
    from flowos.model._device import (
        XVC as XVC,
        Bitstream as Bitstream,
        DeviceKind as DeviceKind,
        DeviceOwner as DeviceOwner,
        DeviceRecord as DeviceRecord,
        DeviceState as DeviceState,
        Fpga as Fpga,
        NodeDevice as NodeDevice,
    )
    from flowos.model._either import either as either
    from flowos.model._engine_array import EngineArray as EngineArray, on_host as on_host
    from flowos.model._engine_flow import (
        EngineFlow as EngineFlow,
        EngineSite as EngineSite,
        with_chosen as with_chosen,
        with_engines as with_engines,
    )
    from flowos.model._engine_plan import (
        HOST as HOST,
        ChosenEngines as ChosenEngines,
        EnginePlan as EnginePlan,
        PlannedCopy as PlannedCopy,
        PlannedTask as PlannedTask,
        SiteNote as SiteNote,
    )
    from flowos.model._errors import (
        Cancelled as Cancelled,
        CloudError as CloudError,
        DeviceError as DeviceError,
        EngineMissing as EngineMissing,
        EnvironmentRefused as EnvironmentRefused,
        FeedError as FeedError,
        FlowosError as FlowosError,
        LaunchFailed as LaunchFailed,
        MeasureError as MeasureError,
        NoRetry as NoRetry,
        NoStoreError as NoStoreError,
        RoundLimitExceeded as RoundLimitExceeded,
        SampleError as SampleError,
        SettingsError as SettingsError,
        SliceFreed as SliceFreed,
        SliceRefused as SliceRefused,
        SolveError as SolveError,
        StoreError as StoreError,
        TaskFailed as TaskFailed,
        TimeLimitExceeded as TimeLimitExceeded,
        UsageError as UsageError,
        ValueRefused as ValueRefused,
        WiringError as WiringError,
        WorkerLost as WorkerLost,
    )
    from flowos.model._errors import UnknownDevice as UnknownDevice, UnknownImage as UnknownImage
    from flowos.model._errors import UnknownName as UnknownName, UnknownRecord as UnknownRecord
    from flowos.model._extents import (
        Extents as Extents,
        AxisRef as AxisRef,
        PortIncompatible as PortIncompatible,
        bind_extents as bind_extents,
    )
    from flowos.model._facts import (
        Blas as Blas,
        Cache as Cache,
        Compiler as Compiler,
        CudaDevice as CudaDevice,
        Facts as Facts,
        LogicalCpu as LogicalCpu,
        Memory as Memory,
        Missing as Missing,
        Mpi as Mpi,
        NumaNode as NumaNode,
        RdmaPort as RdmaPort,
        FileSystemFacts as FileSystemFacts,
        Tool as Tool,
        Tried as Tried,
    )
    from flowos.model._fake_script import FakeStep as FakeStep, read_script as read_script
    from flowos.model._file_parts import has_files as has_files, with_files as with_files
    from flowos.model._graph import (
        Body as Body,
        Call as Call,
        Cond as Cond,
        Constant as Constant,
        Flow as Flow,
        Loop as Loop,
        Port as Port,
        Task as Task,
        flow_input as flow_input,
        flow_output as flow_output,
    )
    from flowos.model._launch import (
        BARE as BARE,
        MPIS as MPIS,
        Argv as Argv,
        Boot as Boot,
        Counts as Counts,
        CpuTimes as CpuTimes,
        CUDA as CUDA,
        DeviceNumbers as DeviceNumbers,
        End as End,
        Environment as Environment,
        Exited as Exited,
        Form as Form,
        Image as Image,
        ImageConfig as ImageConfig,
        LinuxKernel as LinuxKernel,
        Killed as Killed,
        Launch as Launch,
        Lost as Lost,
        MpiName as MpiName,
        Needs as Needs,
        NotStarted as NotStarted,
        Outcome as Outcome,
        Pairs as Pairs,
        RuntimeFailed as RuntimeFailed,
        Usage as Usage,
        with_choices as with_choices,
    )
    from flowos.model._names import counted as counted, did_you_mean as did_you_mean
    from flowos.model._native_ports import (
        NATIVE_DTYPES as NATIVE_DTYPES,
        NativePorts as NativePorts,
        dtype_of as dtype_of,
        native_ports as native_ports,
        shape_of as shape_of,
    )
    from flowos.model._native_types import NativeEntry as NativeEntry
    from flowos.model._pool import (
        LOCAL as LOCAL,
        Ask as Ask,
        NodeInfo as NodeInfo,
        Pool as Pool,
        PoolKind as PoolKind,
        Topology as Topology,
        Price as Price,
        StorageTier as StorageTier,
    )
    from flowos.model._ports import (
        Array as Array,
        DeviceArray as DeviceArray,
        Floating as Floating,
        Integer as Integer,
        File as File,
        PortType as PortType,
        any_ as any_,
        array as array,
        bool_ as bool_,
        bytes_ as bytes_,
        float16 as float16,
        float32 as float32,
        float64 as float64,
        int8 as int8,
        int16 as int16,
        int32 as int32,
        int64 as int64,
        brief_repr as brief_repr,
        str_ as str_,
        uint8 as uint8,
        uint16 as uint16,
        uint32 as uint32,
        uint64 as uint64,
    )
    from flowos.model._pool_use import (
        PoolStorage as PoolStorage,
        PoolUser as PoolUser,
        StorageSpeed as StorageSpeed,
    )
    from flowos.model._process import Process as Process, SliceUse as SliceUse
    from flowos.model._progress import OnProgress as OnProgress, Progress as Progress
    from flowos.model._roofline import (
        Roof as Roof,
        Roofline as Roofline,
        RooflineKernel as RooflineKernel,
    )
    from flowos.model._run import Entered as Entered, ListedRun as ListedRun, Run as Run
    from flowos.model._run_result import RunResult as RunResult
    from flowos.model._samples import (
        EQUAL_MARGIN as EQUAL_MARGIN,
        RUNS_MARGIN as RUNS_MARGIN,
        Advice as Advice,
        Answer as Answer,
        Binary as Binary,
        Case as Case,
        Chart as Chart,
        Design as Design,
        Effort as Effort,
        MachineState as MachineState,
        Measurement as Measurement,
        Reading as Reading,
        Sample as Sample,
        Share as Share,
        Trust as Trust,
        Unmeasured as Unmeasured,
        Verdict as Verdict,
        MeasurementRequest as MeasurementRequest,
        lower_is_better as lower_is_better,
    )
    from flowos.model._schema import schema_of as schema_of
    from flowos.model._settings import (
        Settings as Settings,
        cloud_fields as cloud_fields,
        fpga_fields as fpga_fields,
        pool_fields as pool_fields,
        read_layers as read_layers,
        read_settings as read_settings,
        settings_schema as settings_schema,
        size_fields as size_fields,
    )
    from flowos.model._settings_layers import (
        SaidSetting as SaidSetting,
        SettingsLayer as SettingsLayer,
        file_layer as file_layer,
        merged as merged,
        options_layer as options_layer,
        said_settings as said_settings,
        unused_variables as unused_variables,
        variables_layer as variables_layer,
    )
    from flowos.model._slice_record import (
        HeldNode as HeldNode,
        SliceAccounts as SliceAccounts,
        SliceEvent as SliceEvent,
        SliceRecord as SliceRecord,
        SliceState as SliceState,
    )
    from flowos.model._source_code import (
        SourceCode as SourceCode,
        alternatives as alternatives,
        first_error as first_error,
        files_of as files_of,
        headers_of as headers_of,
        included_names as included_names,
        is_source_text as is_source_text,
        language_of as language_of,
        misses_c_abi as misses_c_abi,
        quoted_words as quoted_words,
    )
    from flowos.model._streams import (
        CYCLES_A_BEAT as CYCLES_A_BEAT,
        MIN_CYCLES as MIN_CYCLES,
        STREAM_DTYPES as STREAM_DTYPES,
        HdlDesign as HdlDesign,
        HdlStream as HdlStream,
        streams_of as streams_of,
    )
    from flowos.model._suite import (
        FigurePart as FigurePart,
        Paper as Paper,
        PaperFigure as PaperFigure,
        PaperSuite as PaperSuite,
        PublishedMachine as PublishedMachine,
        PublishedNumber as PublishedNumber,
        SuiteStep as SuiteStep,
    )
    from flowos.model._task_log import LoggedTask as LoggedTask, SliceLog as SliceLog
    from flowos.model._vm_size import Promise as Promise, VmSize as VmSize
    from flowos.model._wiring import needs_of as needs_of
    from flowos.model._waiting_task import WaitingTask as WaitingTask
    from flowos.model._work_sizes import (
        WorkSize as WorkSize,
        group_sizes as group_sizes,
        group_incompatibility as group_incompatibility,
        work_sizes as work_sizes,
    )
else:
    __getattr__, __dir__, __all__ = lazily(__name__, _PARTS)
