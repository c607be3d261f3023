complete -c cpz -l backup -d 'make a backup of each existing dest file: none, simple, existing or numbered' -f -a "none\t''
off\t''
simple\t''
never\t''
existing\t''
nil\t''
numbered\t''
t\t''"
complete -c cpz -l no-preserve -d 'do not preserve these attributes' -r -f -a "mode\t''
timestamps\t''
ownership\t''
links\t''
context\t''
xattr\t''
all\t''"
complete -c cpz -l preserve -d 'preserve mode, ownership, timestamps, links, context, xattr or all (default: the first three)' -f -a "mode\t''
timestamps\t''
ownership\t''
links\t''
context\t''
xattr\t''
all\t''"
complete -c cpz -l sparse -d 'make holes in copies: auto (those of SOURCE), always (wherever there are only zeros) or never' -r -f -a "never\t''
auto\t''
always\t''"
complete -c cpz -l reflink -d 'share blocks with SOURCE: always (or fail), auto (if possible) or never; default: auto, without WHEN: always' -f -a "auto\t''
always\t''
never\t''"
complete -c cpz -s S -l suffix -d 'override the usual backup suffix \'~\'' -r -f
complete -c cpz -s t -l target-directory -d 'copy all SOURCEs into DIRECTORY' -r -f -a "(__fish_complete_directories)"
complete -c cpz -l update -d 'replace all, none, none-fail (none, and fail) or older dest files; without WHEN: older' -f -a "all\t''
none\t''
none-fail\t''
older\t''"
complete -c cpz -l context -d 'same as -Z; with CTX, set that context' -f
complete -c cpz -l exclude -d 'leave alone what GLOB matches, in gitignore\'s syntax, relative to each SOURCE; \'!\' includes' -r -f
complete -c cpz -l exclude-from -d 'read such patterns from FILE, or from stdin if it is \'-\', one per line' -r -F
complete -c cpz -l dry-run -d 'change nothing; print what would change and how much, or with \'total\' only how much' -f -a "total\t''"
complete -c cpz -l progress -d 'show progress on stderr: always, never, or auto (the default: only at a terminal)' -f -a "auto\t''
always\t''
never\t''"
complete -c cpz -l link-dest -d 'link to the unchanged files of the older copy DIR, instead of copying them; needs -a or -p' -r -f -a "(__fish_complete_directories)"
complete -c cpz -l max-delete -d 'delete at most N entries' -r -f
complete -c cpz -l max-rate -d 'copy at most so many bytes per second, as in 200M, or entries, as in 500/s' -r -f
complete -c cpz -l threads -d 'use at most N threads (default: chosen automatically)' -r -f
complete -c cpz -l files0-from -d 'copy the SOURCEs whose names are in the file F, with a NUL after each; with F -, in stdin' -r -F
complete -c cpz -l stats -d 'show totals at the end: text (on stderr; the default) or json (a line on stdout)' -f -a "text\t''
json\t''"
complete -c cpz -s a -l archive -d 'same as -dR --preserve=all'
complete -c cpz -l attributes-only -d 'copy only the attributes, not the content'
complete -c cpz -s b -d 'same as --backup, but takes no argument'
complete -c cpz -l copy-contents -d 'copy the contents of special files when recursive'
complete -c cpz -s d -d 'same as -P --preserve=links'
complete -c cpz -l debug -d 'explain how each file is copied; implies -v'
complete -c cpz -s L -l dereference -d 'always follow symbolic links in SOURCE'
complete -c cpz -s f -l force -d 'if an existing dest file cannot be opened, remove it and try again'
complete -c cpz -s H -d 'follow symbolic links that are operands'
complete -c cpz -s i -l interactive -d 'prompt before overwriting'
complete -c cpz -s l -l link -d 'make hard links instead of copies'
complete -c cpz -s n -l no-clobber -d 'silently skip existing dest files'
complete -c cpz -s P -l no-dereference -d 'never follow symbolic links in SOURCE'
complete -c cpz -s p -d 'same as --preserve=mode,ownership,timestamps'
complete -c cpz -s T -l no-target-directory -d 'treat DEST as a normal file'
complete -c cpz -s x -l one-file-system -d 'stay on the file system of each SOURCE'
complete -c cpz -l parents -d 'append the full path of each SOURCE to DIRECTORY'
complete -c cpz -s r -s R -l recursive -d 'copy directories and their contents (default, but not for cp)'
complete -c cpz -l remove-destination -d 'remove each existing dest file before copying'
complete -c cpz -l strip-trailing-slashes -d 'remove trailing slashes from each SOURCE'
complete -c cpz -s s -l symbolic-link -d 'make symbolic links instead of copies'
complete -c cpz -s u -d 'same as --update=older'
complete -c cpz -s v -l verbose -d 'print a line for each file copied'
complete -c cpz -l keep-directory-symlink -d 'follow existing symbolic links to directories at the dest'
complete -c cpz -s Z -d 'set the default security context on each dest file'
complete -c cpz -s h -l help -d 'display this help and exit'
complete -c cpz -l version -d 'display the version and exit'
complete -c cpz -l gitignore -d 'leave alone what the .gitignore files in each SOURCE exclude'
complete -c cpz -l resume -d 'continue an interrupted copy: keep dest files that have the size and time of their SOURCE; needs -a, -p or --preserve=timestamps'
complete -c cpz -l itemize -d 'print for each dest file whether it is new, linked, updated, kept or deleted, and why'
complete -c cpz -l verify -d 'read each copied file and its SOURCE again, and report files that differ'
complete -c cpz -l delete -d 'delete from the dest of each directory what the SOURCE does not have; replace other types'
complete -c cpz -l delete-excluded -d 'same, and delete what is excluded'
complete -c cpz -l atomic -d 'replace an existing file when its copy is complete, by a rename'
complete -c cpz -l fsync -d 'write everything to the disk before cpz ends'
complete -c cpz -l no-cache -d 'drop what was copied from the page cache, and wait for the disk'
complete -c cpz -l no-recursive -d 'do not copy directories, as cp without -r'
complete -c cpz -l no-config -d 'do not read the options in the file that CPZ_CONFIG names'
