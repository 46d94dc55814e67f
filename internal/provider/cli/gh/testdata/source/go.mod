module source

go 1.26.0

require github.com/cli/cli/v2 v2.74.0
