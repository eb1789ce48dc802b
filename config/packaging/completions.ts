// completions.ts: completion of commands, options and paths for bash and zsh, from the commands themselves.

import { leavesOf, type CommandHelp } from './command-tree.ts'

const header = (shell: string) =>
  `# Completion of telemetry-gateway for ${shell}, generated from its commands.\n`

const namesOf = ({ options }: CommandHelp) => options.flatMap(({ names }) => names)

/** Options whose value is a path, and those whose value nothing is known of. */
function optionsWith(tree: CommandHelp, value: 'path' | 'other'): string {
  const named = (wanted: 'path' | 'other') => {
    const all = leavesOf(tree).flatMap(({ options }) => options.filter((one) => one.value === wanted))
    return new Set(all.flatMap(({ names }) => names))
  }
  const [paths, others] = [named('path'), named('other')]
  // Of one name with both, such as --to of two commands, a path is the better guess.
  return [...(value === 'path' ? paths : [...others].filter((name) => !paths.has(name)))].sort().join('|')
}

const lastWord = (path: string) => path.split(' ').at(-1) ?? ''

/** By command: what may follow it. */
function followers(tree: CommandHelp): { path: string; words: string[] }[] {
  return tree.children.flatMap((child) => [
    { path: child.path, words: [...child.children.map(({ path }) => lastWord(path)), ...namesOf(child)] },
    ...followers(child),
  ])
}

export function bashCompletion(tree: CommandHelp): string {
  const top = tree.children.map(({ path }) => path)
  const groups = tree.children.filter(({ children }) => children.length > 0).map(({ path }) => path)
  const cases = followers(tree).map(({ path, words }) => `    '${path}') words='${words.join(' ')}' ;;`)
  return `${header('bash')}
_telemetry_gateway() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD - 1]} called=\${COMP_WORDS[1]} words
  if [ "$COMP_CWORD" -eq 1 ]; then
    mapfile -t COMPREPLY < <(compgen -W '${[...top, ...namesOf(tree)].join(' ')}' -- "$current")
    return
  fi
  case $previous in
    ${optionsWith(tree, 'path')})
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -f -- "$current")
      return
      ;;
    ${optionsWith(tree, 'other')}) return ;;
  esac
  case $called in
    ${groups.join('|')}) [ "$COMP_CWORD" -gt 2 ] && called="$called \${COMP_WORDS[2]}" ;;
  esac
  case $called in
${cases.join('\n')}
    *) words='' ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
  if [ "\${#COMPREPLY[@]}" -eq 0 ] && [[ $current != -* ]]; then
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
  fi
}

complete -F _telemetry_gateway telemetry-gateway
`
}

export function zshCompletion(tree: CommandHelp): string {
  const cases = followers(tree).map(({ path }) => {
    const command = [...tree.children, ...leavesOf(tree)].find((one) => one.path === path)
    const options = command?.options ?? []
    const described = [
      ...(command?.children ?? []).map((child) => inZsh(lastWord(child.path), child.summary)),
      ...options.flatMap(({ names, description }) => names.map((name) => inZsh(name, description))),
    ]
    return `    '${path}') choices=(${described.join(' ')}) ;;`
  })
  const groups = tree.children.filter(({ children }) => children.length > 0).map(({ path }) => path)
  return `#compdef telemetry-gateway
${header('zsh')}
_telemetry_gateway() {
  local -a choices
  local called=\${words[2]}
  if (( CURRENT == 2 )); then
    choices=(${tree.children.map(({ path, summary }) => inZsh(path, summary)).join(' ')})
    _describe command choices
    return
  fi
  case \${words[CURRENT-1]} in
    ${optionsWith(tree, 'path')}) _files; return ;;
    ${optionsWith(tree, 'other')}) _message value; return ;;
  esac
  case $called in
    ${groups.join('|')}) (( CURRENT > 3 )) && called="$called \${words[3]}" ;;
  esac
  case $called in
${cases.join('\n')}
  esac
  _describe option choices
  [[ \${words[CURRENT]} == -* ]] || _files
}

_telemetry_gateway "$@"
`
}

/** One word of an array, \`name:description\`, within single quotes. */
function inZsh(name: string, description: string): string {
  return `'${`${name.replaceAll(':', '\\:')}:${description}`.replaceAll("'", `'\\''`)}'`
}
