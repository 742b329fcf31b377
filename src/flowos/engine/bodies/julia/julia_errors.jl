# What is said of an error: one text, and the line of the person's code that it comes from.

# What an error is about: that of a file that was loaded, or of a task that was waited for.
function cause_of(error, trace)
    error isa LoadError && return cause_of(error.error, trace)
    error isa TaskFailedException && return cause_of(error.task.exception, error.task.backtrace)
    if error isa CompositeException && !isempty(error.exceptions)
        return cause_of(first(error.exceptions), trace)
    end
    return error, trace
end

function text_of(@nospecialize(error))
    try
        return String(sprint(showerror, error))
    catch
        return string(typeof(error))
    end
end

function message_of(@nospecialize(error))
    text = text_of(error)
    syntax = match(r"── (.*)", text) # of the parser since 1.10, below the lines of the code
    occursin("ParseError", text) && syntax !== nothing && return String(syntax[1])
    error isa MethodError && return String(first(split(text, '\n'))) # others are candidates
    return text
end

const OWN = [
    dirname(@__FILE__) * "/",
    normpath(joinpath(Sys.BINDIR, Base.DATAROOTDIR, "julia")) * "/",
    [joinpath(depot, "packages") * "/" for depot in DEPOT_PATH]...,
]

# Whether a file is of the person, not of Julia or of a package.
function is_theirs(file, name)
    file == name && return true
    startswith(file, "./") && return false
    return isfile(file) && !any(own -> startswith(file, own), OWN)
end

# As one reads it in the source: #f#3, f##kw and #5 are names of the compiler.
function function_name(frame)
    name = string(frame.func)
    startswith(name, "top-level scope") && return ""
    words = filter(part -> !all(isdigit, part), split(name, '#'; keepempty = false))
    return isempty(words) ? "a function without a name" : String(first(words))
end

# The file, line and function of the innermost call that stands in code of the person.
function place_of(trace, name)
    for frame in stacktrace(trace)
        file = string(frame.file)
        file = file == "./$name" ? name : file # so Julia calls what is no path
        if !frame.from_c && is_theirs(file, name)
            return file, string(frame.line), function_name(frame)
        end
    end
    return "", "", ""
end

# That of a file that cannot be parsed or loaded: the innermost of several.
function load_place(error)
    found = "", "", ""
    while error isa LoadError
        found = string(error.file), string(error.line), ""
        error = error.error
    end
    return found
end
