# The process that runs bodies in Julia: it is taught functions, and answers each message with one.
# _language_channel.py is at the other end, and says what messages are.
#
# Arguments: the FIFO that messages come by, the one for answers, the file for what is too long. For
# Julia 1.5 and later.
module FlowosProcess

using Mmap

Base.Experimental.@optlevel 1

include("julia_values.jl")
include("julia_errors.jl")

const MAX_HERE = 49152
const GOOD, ERROR, MISMATCH = 0, 1, 2

struct Body
    call::Any
    file::String
    inputs::Int
    outputs::Vector{String}
end

const bodies = Dict{Int,Body}()
const printed = Ref{Any}((stdout, stderr))

# All that was printed by now. A redirection ends with its call.
function show_printed()
    for stream in (stdout, stderr)
        isopen(stream) && flush(stream)
    end
    Libc.flush_cstdio()
    stdout === printed[][1] || redirect_stdout(printed[][1])
    stderr === printed[][2] || redirect_stderr(printed[][2])
end

function answer(channel, status, numbers::Vector{Float64}, pieces::Vector{Any})
    show_printed()
    sizes = Int[]
    for piece in pieces
        push!(sizes, sizeof(piece))
    end
    bytes = sum(sizes)
    apart = bytes > MAX_HERE
    head = Float64[status, apart, length(numbers), apart ? 0 : bytes]
    message = IOBuffer()
    write(message, head)
    write(message, numbers)
    room = apart ? map_room!(channel, bytes) : UInt8[]
    at = 0
    for (i, piece) in enumerate(pieces)
        apart ? put(piece, pointer(room) + at) : put(piece, message)
        at += sizes[i]
    end
    write(channel.answers, take!(message))
    flush(channel.answers)
end

function refuse(channel, status, texts::String...)
    joined = IOBuffer()
    for text in texts
        write(joined, replace(text, '\0' => ' '), '\0')
    end
    answer(channel, status, Float64[], Any[take!(joined)])
end

function refuse_error(channel, error, trace, name)
    error isa Mismatch && return refuse(channel, MISMATCH, error.name, error.why)
    cause, inner = cause_of(error, trace)
    place, loading = place_of(inner, name), load_place(error)
    # a call of include() is not where a file that cannot be parsed is wrong
    if isempty(place[1]) || !isempty(loading[1]) && occursin(r"syntax: |ParseError", text_of(cause))
        place = loading
    end
    refuse(channel, ERROR, message_of(cause), place...)
end

# numbers: the body's, how many inputs, how many texts, their bytes, the kind of each input. texts:
# the function, its file's name, the code, names of inputs, names of outputs; each ends with 0.
function teach(channel, numbers)
    number, inputs, _, bytes = Int.(numbers[1:4])
    texts = split(String(next_array(UInt8, (bytes,), channel)), '\0')[1:end-1]
    entry, name, code = String.(texts[1:3])
    try
        home = Core.eval(Main, Expr(:module, true, Symbol("body", number), Expr(:block)))
        task_local_storage(:SOURCE_PATH, abspath(name)) do # what it includes lies next to it
            include_string(home, code, name)
        end
        call = isdefined(home, Symbol(entry)) ? Core.eval(home, Symbol(entry)) : nothing
        kinds, _ = kinds_of(numbers, 5, inputs)
        why = Base.invokelatest(why_not, call, entry, name, kinds)
        isempty(why) || return refuse(channel, ERROR, why, "", "", "")
        bodies[number] = Body(call, name, inputs, String.(texts[4 + inputs:end]))
    catch thrown
        return Base.invokelatest(refuse_error, channel, thrown, catch_backtrace(), name)
    end
    answer(channel, GOOD, Float64[], Any[])
end

type_of(code, dims) = code == TEXT ? (isempty(dims) ? String : Vector{String}) :
    isempty(dims) ? TYPES[code] : Array{TYPES[code],length(dims)}

function why_not(call, entry, name, kinds)
    call === nothing && return "$name has no function $entry"
    given = [type_of(code, dims) for (code, dims) in kinds]
    hasmethod(call, Tuple{given...}) && return ""
    return "$entry has no method for ($(join(map(type -> "::$type", given), ", ")))"
end

# numbers: the body's, then (code, axes, extents) of each input and output.
function run(channel, numbers)
    body = bodies[Int(numbers[1])]
    inputs, at = kinds_of(numbers, 2, body.inputs)
    outputs, _ = kinds_of(numbers, at, length(body.outputs))
    values, counts, pieces = Any[], Float64[], Any[]
    for (code, dims) in inputs
        push!(values, next_value(channel, code, dims))
    end
    try
        results = outputs_of(body.call(values...), body.outputs)
        for (i, (code, dims)) in enumerate(outputs)
            of_one, count = pieces_of(results[i], code, dims, body.outputs[i])
            append!(pieces, of_one)
            push!(counts, count)
        end
    catch thrown
        return refuse_error(channel, thrown, catch_backtrace(), body.file)
    end
    answer(channel, GOOD, counts, pieces)
end

function serve()
    asks, answers = open(ARGS[1], "r"), open(ARGS[2], "w")
    channel = Channel(asks, answers, open(ARGS[3], "r+"), UInt8[], false, 0)
    empty!(ARGS)
    printed[] = (stdout, stderr)
    answer(channel, GOOD, Float64[getpid()], Any[])
    while !eof(asks)
        kind, apart, count = Int.(read!(asks, Vector{Float64}(undef, 3)))
        numbers = read!(asks, Vector{Float64}(undef, count))
        channel.apart, channel.at = apart == 1, 0
        channel.apart && map_room!(channel, 0)
        Base.invokelatest(kind == 1 ? teach : run, channel, numbers)
    end
end

end

FlowosProcess.serve()
