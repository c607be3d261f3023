_cpz__mpi() {
    local i cur prev opts cmd
    COMPREPLY=()
    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
        cur="$2"
    else
        cur="${COMP_WORDS[COMP_CWORD]}"
    fi
    prev="$3"
    if [[ "${COMP_WORDS[COMP_CWORD]}" == "=" ]]; then
        prev="${prev}="
        cur=""
    elif [[ "${prev}" == "=" ]]; then
        prev="${COMP_WORDS[COMP_CWORD-2]}="
    fi
    cmd=""
    opts=""

    for i in "${COMP_WORDS[@]:0:COMP_CWORD}"
    do
        case "${cmd},${i}" in
            ",$1")
                cmd="cpz__mpi"
                ;;
            *)
                ;;
        esac
    done

    case "${cmd}" in
        cpz__mpi)
            opts="-a -b -d -L -f -H -i -l -n -P -p -T -x -R -r -S -s -t -u -v -Z -h --archive --attributes-only --backup --backup= --copy-contents --debug --dereference --force --interactive --link --no-clobber --no-dereference --no-preserve= --no-target-directory --one-file-system --parents --preserve --preserve= --recursive --remove-destination --sparse= --reflink --reflink= --strip-trailing-slashes --suffix= --symbolic-link --target-directory= --update --update= --verbose --keep-directory-symlink --context --context= --help --version --exclude= --exclude-from= --gitignore --dry-run --dry-run= --progress --progress= --resume --link-dest= --itemize --verify --delete --delete-excluded --max-delete= --atomic --fsync --no-cache --max-rate= --threads= --files0-from= --stats --stats= --no-recursive --no-config --all-failures "
            if [[ ${cur} == -* ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                [[ ${COMPREPLY[*]} != *= ]] || compopt -o nospace
                return 0
            fi
            case "${prev}" in
                --backup=)
                    COMPREPLY=($(compgen -W "none off simple never existing nil numbered t" -- "${cur}"))
                    return 0
                    ;;
                --no-preserve|--no-preserve=)
                    COMPREPLY=($(compgen -W "mode timestamps ownership links context xattr all" -- "${cur}"))
                    return 0
                    ;;
                --preserve=)
                    COMPREPLY=($(compgen -W "mode timestamps ownership links context xattr all" -- "${cur}"))
                    return 0
                    ;;
                --sparse|--sparse=)
                    COMPREPLY=($(compgen -W "never auto always" -- "${cur}"))
                    return 0
                    ;;
                --reflink=)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                --suffix|--suffix=)
                    COMPREPLY=("${cur}")
                    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
                        compopt -o nospace
                    fi
                    return 0
                    ;;
                -S)
                    COMPREPLY=("${cur}")
                    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
                        compopt -o nospace
                    fi
                    return 0
                    ;;
                --target-directory|--target-directory=)
                    COMPREPLY=()
                    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
                        compopt -o plusdirs
                    fi
                    return 0
                    ;;
                -t)
                    COMPREPLY=()
                    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
                        compopt -o plusdirs
                    fi
                    return 0
                    ;;
                --update=)
                    COMPREPLY=($(compgen -W "all none none-fail older" -- "${cur}"))
                    return 0
                    ;;
                --context=)
                    COMPREPLY=("${cur}")
                    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
                        compopt -o nospace
                    fi
                    return 0
                    ;;
                --exclude|--exclude=)
                    COMPREPLY=("${cur}")
                    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
                        compopt -o nospace
                    fi
                    return 0
                    ;;
                --exclude-from|--exclude-from=)
                    local oldifs
                    if [ -n "${IFS+x}" ]; then
                        oldifs="$IFS"
                    fi
                    IFS=$'\n'
                    COMPREPLY=($(compgen -f "${cur}"))
                    if [ -n "${oldifs+x}" ]; then
                        IFS="$oldifs"
                    fi
                    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
                        compopt -o filenames
                    fi
                    return 0
                    ;;
                --dry-run=)
                    COMPREPLY=($(compgen -W "total" -- "${cur}"))
                    return 0
                    ;;
                --progress=)
                    COMPREPLY=($(compgen -W "auto always never" -- "${cur}"))
                    return 0
                    ;;
                --link-dest|--link-dest=)
                    COMPREPLY=()
                    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
                        compopt -o plusdirs
                    fi
                    return 0
                    ;;
                --max-delete|--max-delete=)
                    COMPREPLY=("${cur}")
                    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
                        compopt -o nospace
                    fi
                    return 0
                    ;;
                --max-rate|--max-rate=)
                    COMPREPLY=("${cur}")
                    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
                        compopt -o nospace
                    fi
                    return 0
                    ;;
                --threads|--threads=)
                    COMPREPLY=("${cur}")
                    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
                        compopt -o nospace
                    fi
                    return 0
                    ;;
                --files0-from|--files0-from=)
                    local oldifs
                    if [ -n "${IFS+x}" ]; then
                        oldifs="$IFS"
                    fi
                    IFS=$'\n'
                    COMPREPLY=($(compgen -f "${cur}"))
                    if [ -n "${oldifs+x}" ]; then
                        IFS="$oldifs"
                    fi
                    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
                        compopt -o filenames
                    fi
                    return 0
                    ;;
                --stats=)
                    COMPREPLY=($(compgen -W "text json" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            ;;
    esac
}

if [[ "${BASH_VERSINFO[0]}" -eq 4 && "${BASH_VERSINFO[1]}" -ge 4 || "${BASH_VERSINFO[0]}" -gt 4 ]]; then
    complete -F _cpz__mpi -o bashdefault -o default cpz-mpi
else
    complete -F _cpz__mpi -o bashdefault -o default cpz-mpi
fi
