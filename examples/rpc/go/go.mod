module example.org/dragoman-rpc

go 1.21
