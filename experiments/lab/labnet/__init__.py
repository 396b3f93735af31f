"""What lab.py is made of, from the ground up:

    errors      what goes wrong, and with which exit code
    quantities  rates, times and shares as people write them
    linux       system calls that Python has no name for
    hosts       hosts: their names, addresses, namespaces and TCP
    awake       processors that do not halt
    networks    what joins hosts: the TAP switch, or veth with tbf
    load        who used the processors, and whether a run was disturbed
    mpi         the command line of mpirun
    launcher    brings a lab up, runs a command in it, takes it down
    cluster     a lab as a cluster file of Paceline
    commands    how other scripts run a command in the lab
"""
