# The process that runs bodies in R: it is taught functions, and answers each message with one.
# _language_channel.py is at the other end, and says what messages are.
#
# Arguments: the FIFO that messages come by, the one for answers, the file for what is too long. All
# but the values is float64, as each call of readBin and writeBin takes 10 us. Texts end with a 0 byte.
# A function with a name: where R is killed by a signal it prints its calls, `local` with all that is
# in it.
.flowos <- function() {
  rm(.flowos, envir = globalenv())
  LOGICAL <- 1; INTEGER <- 2; DOUBLE <- 3; COMPLEX <- 4; TEXT <- 5
  NAMES <- c("logical", "integer", "double", "complex", "character")
  BYTES <- c(4, 4, 8, 16)
  TAKES <- list(
    "logical", c("integer", "double"), c("double", "integer"),
    c("complex", "double", "integer"), "character"
  )
  MAX_HERE <- 49152
  CHUNK <- 2^16 # elements: writeBin copies what it takes, less than 2^31 bytes at once

  words <- commandArgs(TRUE)
  asks <- file(words[[1]], "rb", raw = TRUE)
  answers <- file(words[[2]], "wb", raw = TRUE)
  bodies <- list()
  place <- c("", "", "")

  # readBin breaks a text at 10,000 bytes.
  texts_of <- function(from, count, bytes) {
    content <- readBin(from, "raw", bytes)
    ends <- which(content == as.raw(0))
    begins <- c(0, ends)[seq_len(count)]
    texts <- vapply(seq_len(count), function(i) {
      rawToChar(content[begins[[i]] + seq_len(ends[[i]] - begins[[i]] - 1)])
    }, "")
    Encoding(texts) <- "UTF-8"
    texts
  }

  value_of <- function(from, code, dims) {
    if (code == TEXT) return(texts_of(from, dims[[1]], dims[[2]]))
    n <- prod(dims)
    value <- readBin(from, NAMES[[code]], n)
    if (length(value) != n) stop("a message was cut short")
    if (length(dims) > 1) dim(value) <- dims
    value
  }

  put <- function(value, to) {
    n <- length(value)
    if (n <= CHUNK) return(writeBin(value, to))
    for (begin in seq(1, n, CHUNK)) writeBin(value[begin:min(n, begin + CHUNK - 1)], to)
  }

  bytes_of <- function(value, code) {
    if (code == TEXT) sum(nchar(value, "bytes") + 1) else BYTES[[code]] * length(value)
  }

  answer <- function(status, numbers, values, codes) {
    bytes <- 0
    for (i in seq_along(values)) bytes <- bytes + bytes_of(values[[i]], codes[[i]])
    apart <- bytes > MAX_HERE
    to <- answers
    if (apart) {
      to <- file(words[[3]], "r+b", raw = TRUE)
      for (value in values) put(value, to)
      close(to)
    }
    here <- if (apart) 0 else bytes
    writeBin(as.double(c(status, apart, length(numbers), here, numbers)), answers)
    if (!apart) for (value in values) put(value, answers)
    flush(answers)
  }

  refuse <- function(status, ...) {
    answer(status, 0, list(enc2utf8(c(...))), TEXT)
  }

  # The innermost call that stands in code of the person: its file, line and function.
  find_place <- function(calls, parents) {
    for (k in rev(seq_along(calls))) {
      ref <- attr(calls[[k]], "srcref")
      if (is.null(ref)) next
      at <- if (parents[[k]] > 0) parents[[k]] else k - 1 # a primitive has no frame of its own
      within <- if (at > 0) calls[[at]][[1]]
      named <- if (is.name(within)) as.character(within) else ""
      return(c(attr(ref, "srcfile")$filename, ref[[1]], named))
    }
    c("", "", "")
  }

  # Its value, or NULL after an error, which is answered.
  tried <- function(expression) {
    place <<- c("", "", "")
    result <- tryCatch(
      list(withCallingHandlers(expression, error = function(e) {
        found <- find_place(sys.calls(), sys.parents())
        if (nzchar(found[[1]])) place <<- found
      })),
      error = identity
    )
    while (sink.number() > 0) sink() # those that it did not end
    if (sink.number("message") != 2) sink(type = "message")
    if (!inherits(result, "error")) return(result)
    refuse(1, paste(as.character(conditionMessage(result)), collapse = " "), place)
    NULL
  }

  taught <- function(file, text) {
    lines <- strsplit(text, "\n", fixed = TRUE)[[1]]
    code <- parse(text = lines, keep.source = TRUE, srcfile = srcfilecopy(file, lines))
    within <- new.env(parent = globalenv())
    for (i in seq_along(code)) {
      withCallingHandlers(eval(code[[i]], within), error = function(e) {
        place <<- c(file, attr(code, "srcref")[[i]][[1]], "")
      })
    }
    within
  }

  why_not <- function(fun, entry, file, count) {
    if (!is.function(fun)) return(paste0(file, " has no function ", entry))
    has <- formals(args(fun))
    at_least <- sum(vapply(has, function(x) is.name(x) && !nzchar(as.character(x)), NA))
    at_least <- at_least - ("..." %in% names(has))
    if (count < at_least || (count > length(has) && !("..." %in% names(has)))) {
      return(paste0(entry, " takes ", length(has), " arguments, and is called with ", count))
    }
    ""
  }

  # numbers: the body's, how many inputs, how many texts, their bytes. texts: the function, its
  # file's name, the code, names of inputs, names of outputs.
  teach <- function(numbers, texts) {
    entry <- texts[[1]]
    inputs <- texts[3 + seq_len(numbers[[2]])]
    within <- tried(taught(texts[[2]], texts[[3]]))
    if (is.null(within)) return()
    fun <- get0(entry, within[[1]], mode = "function", inherits = FALSE)
    why <- why_not(fun, entry, texts[[2]], length(inputs))
    if (nzchar(why)) return(refuse(1, why, "", "", ""))
    call <- as.call(lapply(c(entry, inputs), as.name))
    outputs <- texts[-seq_len(3 + length(inputs))]
    bodies[[numbers[[1]]]] <<- list(
      within = within[[1]], call = call, inputs = inputs, outputs = outputs
    )
    answer(0, 0, list(), numeric())
  }

  # "", or why the result is not what the port takes.
  incompatibility <- function(value, code, dims) {
    kind <- typeof(value)
    if (is.object(value)) return(paste("expected", NAMES[[code]], "without a class, given a", class(value)[[1]]))
    if (!(kind %in% TAKES[[code]])) return(paste0("expected ", NAMES[[code]], ", given ", kind))
    if (code == TEXT && anyNA(value)) return("it has NA, and a text has not")
    if (code == TEXT && any(Encoding(value) == "bytes" | Encoding(value) != "latin1" & !validUTF8(value))) {
      return("it has bytes that are no text")
    }
    has <- if (is.null(dim(value))) length(value) else dim(value)
    if (length(dims) == 0) dims <- 1
    if (dims[[1]] < 0 && length(has) == 1) return("")
    if (length(has) == length(dims) && all(has == dims)) return("")
    paste("expected", paste(dims, collapse = " x "), "elements, given", paste(has, collapse = " x "))
  }

  as_sent <- function(value, code) {
    attributes(value) <- NULL # writeBin takes plain vectors
    if (code == DOUBLE && is.integer(value)) return(as.double(value))
    if (code == COMPLEX && !is.complex(value)) return(as.complex(value))
    if (code == TEXT) return(enc2utf8(value))
    value
  }

  # requested: (code, axes, extents) of each output; an extent of -1 is any.
  give <- function(result, requested, names) {
    values <- if (length(names)) list(result) else list()
    if (length(names) > 1) {
      if (!is.list(result) || length(result) != length(names)) {
        return(refuse(2, "", paste("expected a list of", length(names), "outputs, given",
          typeof(result), "of length", length(result))))
      }
      if (!is.null(names(result)) && !setequal(names(result), names)) {
        return(refuse(2, "", paste0("expected a list of ", paste(names, collapse = ", "), ", given ",
          paste(names(result), collapse = ", "))))
      }
      values <- if (is.null(names(result))) result else result[names]
    }
    codes <- numeric(length(values))
    at <- 1
    for (i in seq_along(values)) {
      code <- requested[[at]]
      axes <- requested[[at + 1]]
      why <- incompatibility(values[[i]], code, requested[at + 1 + seq_len(axes)])
      if (nzchar(why)) return(refuse(2, names[[i]], why))
      values[[i]] <- as_sent(values[[i]], code)
      codes[[i]] <- if (code == INTEGER && is.double(values[[i]])) DOUBLE else code
      at <- at + 2 + axes
    }
    counts <- if (length(values)) vapply(values, length, 0) else numeric()
    answer(0, c(rbind(codes, counts)), values, codes)
  }

  # numbers: the body's, then (code, axes, extents) of each input and output; of texts the extents
  # are how many, and their bytes.
  run <- function(numbers, from) {
    body <- bodies[[numbers[[1]]]]
    at <- 2
    within <- new.env(parent = body$within)
    for (name in body$inputs) {
      axes <- numbers[[at + 1]]
      assign(name, value_of(from, numbers[[at]], numbers[at + 1 + seq_len(axes)]), within)
      at <- at + 2 + axes
    }
    result <- tried(eval(body$call, within))
    if (!is.null(result)) give(result[[1]], numbers[-seq_len(at - 1)], body$outputs)
  }

  if (!l10n_info()[["UTF-8"]]) Sys.setlocale("LC_CTYPE", "C.UTF-8")
  options(warn = 1, keep.source = TRUE)
  answer(0, Sys.getpid(), list(), numeric())
  repeat {
    head <- readBin(asks, "double", 3L)
    if (length(head) < 3) quit(status = 0)
    numbers <- readBin(asks, "double", head[[3]])
    from <- if (head[[2]]) file(words[[3]], "rb", raw = TRUE) else asks
    if (head[[1]] == 1) teach(numbers, texts_of(from, numbers[[3]], numbers[[4]])) else run(numbers, from)
    if (head[[2]]) close(from)
  }
}
.flowos()
