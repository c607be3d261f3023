complete -c rmz-mpi -l interactive -d 'prompt never, once (-I) or always (-i); without WHEN, prompt always' -f -a "never\t''
no\t''
none\t''
once\t''
always\t''
yes\t''"
complete -c rmz-mpi -l preserve-root -d 'do not remove \'/\' (default); with \'all\', also refuse operands that are mount points' -f -a "all\t''"
complete -c rmz-mpi -l exclude -d 'leave alone what GLOB matches, in gitignore\'s syntax: names anywhere, paths relative to a FILE' -r -f
complete -c rmz-mpi -l exclude-from -d 'read such patterns from FILE, or from stdin if it is \'-\', one per line' -r -F
complete -c rmz-mpi -l dry-run -d 'remove nothing; print what would be removed and how much, or with \'total\' only how much' -f -a "total\t''"
complete -c rmz-mpi -l progress -d 'show progress on stderr: always, never, or auto (the default: only at a terminal)' -f -a "auto\t''
always\t''
never\t''"
complete -c rmz-mpi -l max-rate -d 'remove at most so many entries per second, as in 500/s' -r -f
complete -c rmz-mpi -l threads -d 'use at most N threads (default: chosen automatically)' -r -f
complete -c rmz-mpi -l files0-from -d 'remove the files whose names are in the file F, with a NUL after each; with F -, in stdin' -r -F
complete -c rmz-mpi -l stats -d 'show totals at the end: text (on stderr; the default) or json (a line on stdout)' -f -a "text\t''
json\t''"
complete -c rmz-mpi -s f -l force -d 'ignore missing files and operands, never prompt'
complete -c rmz-mpi -s i -d 'prompt before every removal'
complete -c rmz-mpi -s I -d 'prompt once before removing more than three files, or before removing recursively'
complete -c rmz-mpi -l one-file-system -d 'when removing recursively, skip directories on other file systems than that of their operand'
complete -c rmz-mpi -l no-preserve-root -d 'do not treat \'/\' specially'
complete -c rmz-mpi -s r -s R -l recursive -d 'remove directories and their contents (default, but not for rm)'
complete -c rmz-mpi -s d -l dir -d 'remove empty directories, even without -r; rmz removes the others, too'
complete -c rmz-mpi -s v -l verbose -d 'print a line for each file removed'
complete -c rmz-mpi -s h -l help -d 'display this help and exit'
complete -c rmz-mpi -l version -d 'display the version and exit'
complete -c rmz-mpi -l unlock -d 'remove what is in directories of yours that are read-only, by \'chmod u+rwx\' of these'
complete -c rmz-mpi -l detach -d 'hide directories at once, and remove them in the background; failures go to the log RMZ_LOG'
complete -c rmz-mpi -l reap -d 'remove what --detach has hidden directly in each FILE and no process is removing any more'
complete -c rmz-mpi -l wait -d 'with --detach or --reap, return when the removal in the background is done, with its status'
complete -c rmz-mpi -l no-recursive -d 'do not remove directories, as rm without -r'
complete -c rmz-mpi -l no-config -d 'do not read the options in the file that RMZ_CONFIG names'
complete -c rmz-mpi -l all-failures -d 'write each failure, not only the first 100 of each rank with one reason'
