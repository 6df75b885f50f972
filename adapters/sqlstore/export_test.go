package sqlstore

var Away = away
