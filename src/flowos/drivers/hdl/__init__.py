"""Modules of Verilog: command lines of Verilator, Yosys and nextpnr, and what goes over a UART."""
