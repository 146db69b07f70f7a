module go_model

go 1.19
