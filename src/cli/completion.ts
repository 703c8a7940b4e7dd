// `arbor completion`: scripts that complete commands, options and the values of options. A script contains all
// commands, so that only the completion of names, which the service is asked for, starts a process.
import { Argument, type Command, type Option } from "commander";
import type { CompletedKind } from "./remote/names/complete.js";

/** A command in a script. */
interface CommandNode {
  /** The names on the way to the command, such as `iam groups list`; empty for `arbor` itself. */
  readonly path: string;
  readonly commands: readonly Word[];
  readonly options: readonly (Word & { readonly names: readonly string[]; readonly value: Value | undefined })[];
  /** The choices of its first argument. */
  readonly choices: readonly string[];
  /** The kind of resource that its first argument names. */
  readonly names: CompletedKind | undefined;
}

interface Word {
  readonly name: string;
  readonly help: string;
}

/** The value of an option: a file, the name of a resource, one of some words, or, if there are none, any text. */
type Value = "file" | readonly string[] | { readonly kind: CompletedKind };

/** Finds the kind of resource whose names a flag or an argument takes. */
type FindKind = (command: Command, parameter: Option | Argument) => CompletedKind | undefined;

const shells = { bash: renderBash, zsh: renderZsh, fish: renderFish };

/** Fills `completion`. */
export function addCompletion(completion: Command): void {
  completion
    .addArgument(new Argument("<shell>", "the shell").choices(Object.keys(shells)))
    .action(async (shell: keyof typeof shells) => {
      const [{ withStdout }, { fillAll }, { findNamedKind }] = await Promise.all([
        import("./output/terminal.js"),
        import("./lazy-command.js"),
        import("./remote/names/parameter-kinds.js"),
      ]);
      const arbor = completion.parent ?? completion;
      await fillAll(arbor);
      await withStdout(({ write }) => write(formatCompletion(arbor, shell, findNamedKind)));
    });
}

export function formatCompletion(arbor: Command, shell: keyof typeof shells, findKind: FindKind): string {
  return shells[shell](collectNodes(arbor, "", findKind));
}

function collectNodes(command: Command, path: string, findKind: FindKind): CommandNode[] {
  const [argument] = command.registeredArguments;
  const help = command.createHelp();
  const subcommands = help.visibleCommands(command);
  const node: CommandNode = {
    path,
    commands: subcommands.flatMap((sub) =>
      [sub.name(), ...sub.aliases()].map((name) => ({ name, help: getFirstSentence(help.subcommandDescription(sub)) })),
    ),
    options: help.visibleOptions(command).map((option) => ({
      name: option.long ?? option.flags,
      names: [option.short, option.long].filter((name) => name !== undefined),
      help: getFirstSentence(help.optionDescription(option)),
      value: parseValue(option, findKind(command, option)),
    })),
    choices: argument?.argChoices ?? [],
    names: argument && findKind(command, argument),
  };
  const descendants = subcommands.flatMap((sub) =>
    [sub.name(), ...sub.aliases()].flatMap((name) => collectNodes(sub, `${path} ${name}`.trim(), findKind)),
  );
  return [node, ...descendants];
}

function parseValue({ flags, argChoices }: Option, kind: CompletedKind | undefined): Value | undefined {
  if (kind !== undefined) return { kind };
  const placeholder = /[<[]([^>\]]+)[>\]]/.exec(flags)?.[1];
  if (placeholder === undefined) return undefined;
  if (/^(file|new-file|directory)$/.test(placeholder)) return "file";
  return argChoices ?? (placeholder.includes("|") ? placeholder.split("|") : []);
}

function getFirstSentence(text: string): string {
  return (/^.*?(?=[.:;](?:\s|$)|\s\(choices|$)/s.exec(text)?.[0] ?? "").replace(/\s+/g, " ");
}

/** Formats words for a shell, quoted where necessary. */
function quoteWords(words: readonly string[]): string {
  return words.map((word) => (/^[\w./:,@%+=-]+$/.test(word) ? word : quote(word))).join(" ");
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

// The branches of `case "$at:$option"` for options with values.
function renderValueCases(nodes: readonly CommandNode[], render: (value: Value) => string): string {
  return nodes
    .flatMap(({ path, options }) =>
      options.flatMap(({ names, value }) =>
        value === undefined
          ? []
          : [`    (${names.map((name) => quote(`${path}:${name}`)).join("|")}) ${render(value)} ;;`],
      ),
    )
    .join("\n");
}

// Finds the path of the command before the cursor.
function renderCommandCases(nodes: readonly CommandNode[]): string {
  return nodes
    .filter(({ path }) => path !== "")
    .map(({ path }) => quote(path))
    .join("|");
}

function renderBash(nodes: readonly CommandNode[]): string {
  const words = nodes.map(({ path, commands, options, choices, names: kind }) => {
    const all = [...commands.map(({ name }) => name), ...choices, ...options.flatMap(({ names }) => names)];
    const names = kind === undefined ? "" : ` [[ $cur == -* ]] || _arbor_names ${quote(kind)};`;
    return `    (${quote(path)}) words=${quote(all.join(" "))};${names} ;;`;
  });
  const values = renderValueCases(nodes, (value) => {
    if (value === "file") return "_arbor_files";
    return "kind" in value ? `_arbor_names ${quote(value.kind)}` : `words=${quote(value.join(" "))}`;
  });
  return `# bash completion for arbor: source <(arbor completion bash)
_arbor_files() {
  local IFS=$'\\n'
  compopt -o filenames 2>/dev/null
  COMPREPLY=($(compgen -f -- "$cur"))
}
# Names are quoted, and given to nothing that would expand them.
_arbor_names() {
  local name
  while IFS= read -r name; do
    COMPREPLY+=("$(printf %q "$name")")
    [[ $name == */ ]] && compopt -o nospace 2>/dev/null
  done < <(arbor complete-names "$1" -- "$cur" 2>/dev/null)
}
_arbor() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" option="\${COMP_WORDS[COMP_CWORD-1]}" at="" words="" i
  # Bash takes --option=value apart at the equals sign.
  if [[ $cur == "=" ]]; then
    cur=""
  elif [[ $option == "=" ]]; then
    option="\${COMP_WORDS[COMP_CWORD-2]}"
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "\${at:+$at }\${COMP_WORDS[i]}" in
      (${renderCommandCases(nodes)}) at="\${at:+$at }\${COMP_WORDS[i]}" ;;
    esac
  done
  COMPREPLY=()
  case "$at:$option" in
${values}
    (*) case "$at" in
${words.join("\n")}
    esac ;;
  esac
  [[ $words ]] && COMPREPLY+=($(compgen -W "$words" -- "$cur"))
}
complete -o nosort -F _arbor arbor 2>/dev/null || complete -F _arbor arbor
`;
}

function renderZsh(nodes: readonly CommandNode[]): string {
  const describeWord = ({ name, help }: Word) => quote(`${name.replaceAll(":", "\\:")}:${help}`);
  const words = nodes.map(({ path, commands, options, choices, names: kind }) => {
    const all = [...commands, ...choices.map((name) => ({ name, help: "" }))].map(describeWord);
    const ask = kind === undefined ? "" : ` _arbor_names ${quote(kind)}`;
    return `    (${quote(path)}) names=(${all.join(" ")}) flags=(${options.map(describeWord).join(" ")})${ask} ;;`;
  });
  const values = renderValueCases(nodes, (value) => {
    if (value === "file") return "_files";
    if ("kind" in value) return `_arbor_names ${quote(value.kind)}`;
    return value.length === 0 ? "_message value" : `compadd -- ${quoteWords(value)}`;
  });
  return `#compdef arbor
# zsh completion for arbor: put it as _arbor into a directory of $fpath, or source it after compinit
_arbor_names() {
  local -a found
  found=("\${(@f)$(arbor complete-names "$1" -- "$PREFIX" 2>/dev/null)}")
  found=(\${found:#})
  compadd -S '' -- "\${(@M)found:#*/}"
  compadd -- "\${(@)found:#*/}"
}
_arbor() {
  local at="" word
  local -a names flags
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "\${at:+$at }$word" in
      (${renderCommandCases(nodes)}) at="\${at:+$at }$word" ;;
    esac
  done
  case "$at:\${words[CURRENT-1]}" in
${values}
    (*) case "$at" in
${words.join("\n")}
    esac
    (( $#names )) && _describe -V command names
    _describe -o -V option flags ;;
  esac
}
if [ "$funcstack[1]" = "_arbor" ]; then _arbor "$@"; else compdef _arbor arbor; fi
`;
}

function renderFish(nodes: readonly CommandNode[]): string {
  const quoteFish = (text: string) => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
  const ask = (kind: CompletedKind) => `(arbor complete-names ${quoteFish(kind)} -- (commandline -ct) 2>/dev/null)`;
  const renderFishValue = (value: Value | undefined) => {
    if (value === undefined) return "";
    if (value === "file") return " -r -F";
    return ` -x -a ${quoteFish("kind" in value ? ask(value.kind) : value.join(" "))}`;
  };
  const lines = nodes.flatMap(({ path, commands, options, choices, names: kind }) => {
    const begin = `complete -c arbor -n ${quoteFish(`__arbor_at ${quoteFish(path)}`)}`;
    return [
      ...commands.map(({ name, help }) => `${begin} -a ${quoteFish(name)} -d ${quoteFish(help)}`),
      ...choices.map((name) => `${begin} -a ${quoteFish(name)}`),
      ...(kind === undefined ? [] : [`${begin} -a ${quoteFish(ask(kind))}`]),
      ...options.map(({ names, help, value }) => {
        const spelled = names.map((name) => (name.startsWith("--") ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`));
        return `${begin} ${spelled.join(" ")} -d ${quoteFish(help)}${renderFishValue(value)}`;
      }),
    ];
  });
  const paths = nodes.filter(({ path }) => path !== "").map(({ path }) => quoteFish(path));
  return `# fish completion for arbor: arbor completion fish | source
function __arbor_at
    set -l at ''
    for word in (commandline -opc)[2..-1]
        set -l next (string trim -- "$at $word")
        if contains -- $next ${paths.join(" ")}
            set at $next
        end
    end
    test "$at" = "$argv[1]"
end
complete -c arbor -f
${lines.join("\n")}
`;
}
