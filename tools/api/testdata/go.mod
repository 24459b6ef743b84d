module example.com/shop

go 1.25.0
