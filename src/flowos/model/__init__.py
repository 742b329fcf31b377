"""Data model: frozen dataclasses and their checks. Standard library only, no side effects."""

from typing import TYPE_CHECKING

from flowos._lazy import lazily

_PARTS = {
    "_baseline": "Baseline BaselineNumber MachineKind",
    "_boot": "read_boot",
    "_bodies": "Captured Command Gang In NativeCode Out PortSpec Python Word",
    "_cloud": (
        "ActionKind Cloud CloudAction CloudDriver CloudRefusal RefusalKind Vm VmOrder tag_values"
    ),
    "_codec": "from_plain to_json to_plain",
    "_composite_ports": (
        "Choice Complex Composite DictOf ListOf ObjectOf OneOf TupleOf complex64 complex128"
    ),
    "_define": "task",
    "_define_commands": "command gang",
    "_define_control": "cond loop",
    "_deployment": "DeployedNode Deployment",
    "_device": "XVC Bitstream DeviceKind DeviceOwner DeviceRecord DeviceState Fpga NodeDevice",
    "_errors": (
        "Cancelled CloudError DeviceError EnvironmentRefused FeedError FlowosError LaunchFailed "
        "MeasureError NoRetry RoundLimitExceeded SampleError SettingsError SliceFreed SliceRefused "
        "SolveError StoreError TaskFailed TimeLimitExceeded UsageError ValueRefused WiringError "
        "WorkerLost"
    ),
    "_extents": "Extents Place PortMisfit bind_extents",
    "_facts": (
        "Blas Cache Compiler CudaDevice Facts FileSystemFacts LogicalCpu Memory Missing Mpi "
        "NumaNode Tool Tried"
    ),
    "_fake_script": "FakeStep read_script",
    "_file_parts": "has_files with_files",
    "_graph": "Body Call Cond Constant Flow Loop Port Task as_task flow_input flow_output",
    "_launch": (
        "BARE CUDA Argv Boot Counts CpuTimes DeviceNumbers End Environment Exited Form GivenCounts "
        "Image ImageConfig Killed Launch LinuxKernel Lost Needs NotStarted Outcome Pairs "
        "RuntimeFailed Usage with_choices"
    ),
    "_native_ports": "NATIVE_DTYPES NativePorts dtype_of native_ports shape_of",
    "_ports": (
        "Array DeviceArray File Floating PortType any_ array bool_ brief_repr bytes_ float16 "
        "float32 float64 int8 int16 int32 int64 str_ uint8 uint16 uint32 uint64"
    ),
    "_pool": "LOCAL Ask NodeInfo Pool PoolKind Price StorageTier Topology",
    "_pool_use": "PoolStorage PoolUser StorageSpeed",
    "_process": "Process SliceUse",
    "_progress": "OnProgress Progress",
    "_roofline": "Roof Roofline RooflineKernel",
    "_run_result": "RunResult",
    "_samples": (
        "Advice Answer Binary Case Chart Design Effort Entered ListedRun MachineState Measurement "
        "Reading Run Sample Share Trust Unmeasured Verdict MeasurementRequest lower_is_better"
    ),
    "_schema": "schema_of",
    "_settings": (
        "Settings cloud_fields fpga_fields pool_fields read_settings settings_schema size_fields"
    ),
    "_slice_record": "HeldNode SliceAccounts SliceEvent SliceRecord SliceState",
    "_source_code": (
        "SourceCode counted first_error headers_of is_source_text language_of misses_c_abi "
        "quoted_includes"
    ),
    "_suite": (
        "FigurePart Paper PaperFigure PaperSuite PublishedMachine PublishedNumber SuiteStep"
    ),
    "_task_log": "LoggedTask SliceLog",
    "_vm_size": "Promise VmSize",
    "_waiting_task": "WaitingTask",
    "_wiring": "needs_of",
}

if TYPE_CHECKING:
    from flowos.model._baseline import (
        Baseline as Baseline,
        BaselineNumber as BaselineNumber,
        MachineKind as MachineKind,
    )
    from flowos.model._boot import (
        read_boot as read_boot,
    )
    from flowos.model._bodies import (
        Captured as Captured,
        Command as Command,
        Gang as Gang,
        In as In,
        NativeCode as NativeCode,
        Out as Out,
        PortSpec as PortSpec,
        Python as Python,
        Word as Word,
    )
    from flowos.model._cloud import (
        ActionKind as ActionKind,
        Cloud as Cloud,
        CloudAction as CloudAction,
        CloudDriver as CloudDriver,
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
    from flowos.model._define import (
        task as task,
    )
    from flowos.model._define_commands import (
        command as command,
        gang as gang,
    )
    from flowos.model._define_control import (
        cond as cond,
        loop as loop,
    )
    from flowos.model._deployment import (
        DeployedNode as DeployedNode,
        Deployment as Deployment,
    )
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
    from flowos.model._errors import (
        Cancelled as Cancelled,
        CloudError as CloudError,
        DeviceError as DeviceError,
        EnvironmentRefused as EnvironmentRefused,
        FeedError as FeedError,
        FlowosError as FlowosError,
        LaunchFailed as LaunchFailed,
        MeasureError as MeasureError,
        NoRetry as NoRetry,
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
    from flowos.model._extents import (
        Extents as Extents,
        Place as Place,
        PortMisfit as PortMisfit,
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
        FileSystemFacts as FileSystemFacts,
        Tool as Tool,
        Tried as Tried,
    )
    from flowos.model._fake_script import (
        FakeStep as FakeStep,
        read_script as read_script,
    )
    from flowos.model._file_parts import (
        has_files as has_files,
        with_files as with_files,
    )
    from flowos.model._graph import (
        Body as Body,
        Call as Call,
        Cond as Cond,
        Constant as Constant,
        Flow as Flow,
        Loop as Loop,
        Port as Port,
        Task as Task,
        as_task as as_task,
        flow_input as flow_input,
        flow_output as flow_output,
    )
    from flowos.model._launch import (
        BARE as BARE,
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
        GivenCounts as GivenCounts,
        Image as Image,
        ImageConfig as ImageConfig,
        LinuxKernel as LinuxKernel,
        Killed as Killed,
        Launch as Launch,
        Lost as Lost,
        Needs as Needs,
        NotStarted as NotStarted,
        Outcome as Outcome,
        Pairs as Pairs,
        RuntimeFailed as RuntimeFailed,
        Usage as Usage,
        with_choices as with_choices,
    )
    from flowos.model._native_ports import (
        NATIVE_DTYPES as NATIVE_DTYPES,
        NativePorts as NativePorts,
        dtype_of as dtype_of,
        native_ports as native_ports,
        shape_of as shape_of,
    )
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
    from flowos.model._process import (
        Process as Process,
        SliceUse as SliceUse,
    )
    from flowos.model._progress import (
        OnProgress as OnProgress,
        Progress as Progress,
    )
    from flowos.model._roofline import (
        Roof as Roof,
        Roofline as Roofline,
        RooflineKernel as RooflineKernel,
    )
    from flowos.model._run_result import (
        RunResult as RunResult,
    )
    from flowos.model._samples import (
        Advice as Advice,
        Answer as Answer,
        Binary as Binary,
        Case as Case,
        Chart as Chart,
        Design as Design,
        Effort as Effort,
        Entered as Entered,
        ListedRun as ListedRun,
        MachineState as MachineState,
        Measurement as Measurement,
        Reading as Reading,
        Run as Run,
        Sample as Sample,
        Share as Share,
        Trust as Trust,
        Unmeasured as Unmeasured,
        Verdict as Verdict,
        MeasurementRequest as MeasurementRequest,
        lower_is_better as lower_is_better,
    )
    from flowos.model._schema import (
        schema_of as schema_of,
    )
    from flowos.model._settings import (
        Settings as Settings,
        cloud_fields as cloud_fields,
        fpga_fields as fpga_fields,
        pool_fields as pool_fields,
        read_settings as read_settings,
        settings_schema as settings_schema,
        size_fields as size_fields,
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
        counted as counted,
        first_error as first_error,
        headers_of as headers_of,
        is_source_text as is_source_text,
        language_of as language_of,
        misses_c_abi as misses_c_abi,
        quoted_includes as quoted_includes,
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
    from flowos.model._task_log import (
        LoggedTask as LoggedTask,
        SliceLog as SliceLog,
    )
    from flowos.model._vm_size import (
        Promise as Promise,
        VmSize as VmSize,
    )
    from flowos.model._wiring import (
        needs_of as needs_of,
    )
    from flowos.model._waiting_task import (
        WaitingTask as WaitingTask,
    )
else:
    __getattr__, __dir__, __all__ = lazily(__name__, _PARTS)
