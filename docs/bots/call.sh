#!/usr/bin/env bash
# Checks and calls, stands pat: the smallest bot there is.
while IFS= read -r line; do
  case $line in
    '{"archie":'*) echo '{"archie":1,"name":"call.sh"}' ;;
    '{"i":'*)
      i=${line#'{"i":'}
      case $line in *'"draw":1'*) action=3 ;; *) action=1 ;; esac
      echo "{\"i\":${i%%,*},\"a\":$action}"
      ;;
  esac
done
