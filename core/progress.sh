main() {
	stage=none entries=0
	if enter "$root" && [ -d "./$holder" ] && cd -P "./$holder" 2>/dev/null; then
		stage=preparing
		if [ -d q ]; then
			stage=checking
		elif [ -d x ]; then
			stage=removing
			entries=$(find .//x 2>/dev/null | grep -c '^\.//')
		fi
	fi
	opening progress
	record progress "$stage" "$entries"
	closing
}
main
