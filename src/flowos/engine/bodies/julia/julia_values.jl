# Values on their way in and out: arrays by columns, texts after the length of each.

const TYPES = (
    Bool, Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64,
    Float16, Float32, Float64, ComplexF32, ComplexF64,
)
const TEXT = length(TYPES) + 1
const HUGE_BYTES = 4 << 20
const PAGE_BYTES = 4096
const MADV_HUGEPAGE = 14

const Integers = Union{Int8,Int16,Int32,Int64,UInt8,UInt16,UInt32,UInt64}
const Floats = Union{Float16,Float32,Float64}
const Reals = Union{Integers,Floats}

# An output that its port does not take. name: "" for all of them.
struct Mismatch <: Exception
    name::String
    why::String
end

# Both ends, and the file mapped so far: `apart` if the values of a message lie there, from `at` on.
mutable struct Channel
    asks::IOStream
    answers::IOStream
    file::IOStream
    room::Vector{UInt8}
    apart::Bool
    at::Int
end

# The file, of so many bytes at least. It may have become shorter and longer again since.
function map_room!(channel, bytes)
    there = filesize(channel.file)
    if there < bytes
        truncate(channel.file, bytes)
        there = bytes
    end
    if length(channel.room) != there
        channel.room = Mmap.mmap(channel.file, Vector{UInt8}, (there,), 0; grow = false)
    end
    return channel.room
end

# Ask for huge pages, as NumPy does: to make new small ones takes longer than the copy.
function ask_huge!(array)
    begins = cld(UInt(pointer(array)), PAGE_BYTES) * PAGE_BYTES
    ends = fld(UInt(pointer(array)) + sizeof(array), PAGE_BYTES) * PAGE_BYTES
    ccall(:madvise, Cint, (UInt, Csize_t, Cint), begins, ends - begins, MADV_HUGEPAGE)
end

# A copy: what a function keeps of its inputs stays as it was.
function fill_next!(array::Array, channel)
    bytes = sizeof(array)
    bytes >= HUGE_BYTES && ask_huge!(array)
    if channel.apart
        room = channel.room
        GC.@preserve array room unsafe_copyto!(
            Ptr{UInt8}(pointer(array)), pointer(room) + channel.at, bytes
        )
        channel.at += bytes
    else
        GC.@preserve array unsafe_read(channel.asks, Ptr{UInt8}(pointer(array)), bytes)
    end
    return array
end

next_array(::Type{T}, dims, channel) where {T} = fill_next!(Array{T}(undef, dims...), channel)

function next_texts(channel, count)
    lengths = next_array(Int64, (count,), channel)
    return [String(next_array(UInt8, (length,), channel)) for length in lengths]
end

function next_value(channel, code, dims)
    if code == TEXT
        return isempty(dims) ? next_texts(channel, 1)[1] : next_texts(channel, dims[1])
    end
    array = next_array(TYPES[code], dims, channel)
    return isempty(dims) ? first(array) : array
end

# (code, extents) of each value from `at` on: code, how many axes, their extents.
function kinds_of(numbers, at, count)
    found = Tuple{Int,Vector{Int}}[]
    for _ in 1:count
        axes = Int(numbers[at + 1])
        push!(found, (Int(numbers[at]), Int.(numbers[at + 2:at + 1 + axes])))
        at += 2 + axes
    end
    return found, at
end

# Whether a value of this type may become a T. A Bool is no number here.
takes(::Type{Bool}, ::Type{V}) where {V} = V <: Bool
takes(::Type{T}, ::Type{V}) where {T<:Real,V} = V <: Reals
takes(::Type{T}, ::Type{V}) where {T<:Complex,V} = V <: Union{Reals,Complex{<:Reals}}

# Julia compares a Float64 with an Int64 or UInt64 as they are; of others it rounds one to the
# other's type first.
wide(v::Floats) = Float64(v)
wide(v::UInt64) = v
wide(v::Integer) = Int64(v)

# Whether T has the value; a float is rounded, unless it would become infinite.
has(::Type{Bool}, ::Bool) = true
has(::Type{T}, v::Integer) where {T<:Integer} = typemin(T) <= v <= typemax(T)
has(::Type{T}, v) where {T<:Integer} =
    isinteger(v) && wide(typemin(T)) <= wide(v) <= wide(typemax(T))
has(::Type{T}, v::Integer) where {T<:AbstractFloat} = wide(T(v)) == wide(v)
has(::Type{T}, v) where {T<:AbstractFloat} = isinf(T(v)) == isinf(v)
has(::Type{Complex{T}}, v) where {T} = has(T, real(v)) && has(T, imag(v))

function checked(::Type{T}, v, name) where {T}
    takes(T, typeof(v)) || throw(Mismatch(name, "expected $T, given $(typeof(v))"))
    has(T, v) || throw(Mismatch(name, "it has $v, which is no $T"))
    return T(v)
end

as_array(::Type{T}, value::Array{T}, name) where {T} = value

function as_array(::Type{T}, value::AbstractArray, name) where {T}
    array = Array{T}(undef, size(value))
    for (i, v) in zip(eachindex(array), value)
        array[i] = checked(T, v, name)
    end
    return array
end

function checked_text(value, name)
    value isa AbstractString || throw(Mismatch(name, "expected String, given $(typeof(value))"))
    text = String(value)
    isvalid(text) || throw(Mismatch(name, "it has bytes that are no text"))
    return text
end

# What is written of an output: arrays and texts, one after the other; and how many texts.
function pieces_of(@nospecialize(value), code, dims, name)
    if code == TEXT
        is_list = !isempty(dims)
        is_list && !(value isa AbstractVector) &&
            throw(Mismatch(name, "expected a vector of String, given $(typeof(value))"))
        texts = [checked_text(text, name) for text in (is_list ? value : (value,))]
        return Any[Int64[sizeof(text) for text in texts], texts...], length(texts)
    end
    T = TYPES[code]
    isempty(dims) && return Any[fill(checked(T, value, name))], 0
    value isa AbstractArray ||
        throw(Mismatch(name, "expected an array of $T, given $(typeof(value))"))
    expected, given = join(dims, " x "), join(size(value), " x ")
    expected == given || throw(Mismatch(name, "expected $expected elements, given $given"))
    return Any[as_array(T, value, name)], 0
end

# The outputs in order: by name from a named tuple, else as they are.
function outputs_of(@nospecialize(result), names)
    length(names) < 2 && return isempty(names) ? Any[] : Any[result]
    if result isa NamedTuple
        given = collect(string.(keys(result)))
        sort(given) == sort(names) ||
            throw(Mismatch("", "expected $(join(names, ", ")), given $(join(given, ", "))"))
        return Any[result[Symbol(name)] for name in names]
    end
    given = string(typeof(result))
    if result isa Union{Tuple,AbstractVector}
        length(result) == length(names) && return Any[result...]
        given *= " of length $(length(result))"
    end
    throw(Mismatch("", "expected a tuple of $(length(names)) outputs, given $given"))
end

put(@nospecialize(piece), message::IOBuffer) = write(message, piece)

function put(@nospecialize(piece), to::Ptr{UInt8})
    GC.@preserve piece unsafe_copyto!(to, Ptr{UInt8}(pointer(piece)), sizeof(piece))
end
