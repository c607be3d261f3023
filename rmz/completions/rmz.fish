complete -c rmz -l interactive -d 'prompt never, once (-I) or always (-i); without WHEN, prompt always' -f -a "never\t''
no\t''
none\t''
once\t''
always\t''
yes\t''"
complete -c rmz -l preserve-root -d 'do not remove \'/\' (default); with \'all\', also refuse operands that are mount points' -f -a "all\t''"
complete -c rmz -l exclude -d 'leave alone what GLOB matches, in gitignore\'s syntax: names anywhere, paths relative to a FILE' -r -f
complete -c rmz -l exclude-from -d 'read such patterns from FILE, or from stdin if it is \'-\', one per line' -r -F
complete -c rmz -l dry-run -d 'remove nothing; print what would be removed and how much, or with \'total\' only how much' -f -a "total\t''"
complete -c rmz -l progress -d 'show progress on stderr: always, never, or auto (the default: only at a terminal)' -f -a "auto\t''
always\t''
never\t''"
complete -c rmz -l max-rate -d 'remove at most so many entries per second, as in 500/s' -r -f
complete -c rmz -l threads -d 'use at most N threads (default: chosen automatically)' -r -f
complete -c rmz -l files0-from -d 'remove the files whose names are in the file F, with a NUL after each; with F -, in stdin' -r -F
complete -c rmz -l stats -d 'show totals at the end: text (on stderr; the default) or json (a line on stdout)' -f -a "text\t''
json\t''"
complete -c rmz -s f -l force -d 'ignore missing files and operands, never prompt'
complete -c rmz -s i -d 'prompt before every removal'
complete -c rmz -s I -d 'prompt once before removing more than three files, or before removing recursively'
complete -c rmz -l one-file-system -d 'when removing recursively, skip directories on other file systems than that of their operand'
complete -c rmz -l no-preserve-root -d 'do not treat \'/\' specially'
complete -c rmz -s r -s R -l recursive -d 'remove directories and their contents (default, but not for rm)'
complete -c rmz -s d -l dir -d 'remove empty directories, even without -r; rmz removes the others, too'
complete -c rmz -s v -l verbose -d 'print a line for each file removed'
complete -c rmz -s h -l help -d 'display this help and exit'
complete -c rmz -l version -d 'display the version and exit'
complete -c rmz -l unlock -d 'remove what is in directories of yours that are read-only, by \'chmod u+rwx\' of these'
complete -c rmz -l detach -d 'hide directories at once, and remove them in the background; failures go to the log RMZ_LOG'
complete -c rmz -l reap -d 'remove what --detach has hidden directly in each FILE and no process is removing any more'
complete -c rmz -l wait -d 'with --detach or --reap, return when the removal in the background is done, with its status'
complete -c rmz -l no-recursive -d 'do not remove directories, as rm without -r'
complete -c rmz -l no-config -d 'do not read the options in the file that RMZ_CONFIG names'
