"""The three profiles of an agent: what is forbidden, sealed, and open to its commands.

`strict` reads narrowly: only the workspace. `standard` is for ordinary work: commands read what
programs need, and write caches and temporary folders; the rest is asked about. `open` also reads
everything that is not forbidden without a question.
"""

import msgspec

# What must never be touched unasked: keys, tokens, what people typed and browsed.
_HOME_SECRETS = tuple(
    f"~/{name}"
    for name in """
    .ssh .gnupg .pki .aws .azure .gcloud .config/gcloud .oci .kube .docker .config/containers
    .config/gh .config/hub .config/glab-cli .netrc .authinfo .authinfo.gpg .git-credentials
    .config/git/credentials .npmrc .yarnrc .yarnrc.yml .pypirc .config/pip .pip .cargo/credentials
    .cargo/credentials.toml .gem/credentials .m2/settings.xml .m2/settings-security.xml
    .gradle/gradle.properties .nuget/NuGet .composer/auth.json .config/composer/auth.json
    .terraform.d .terraformrc .vault-token .config/op .password-store .local/share/keyrings
    .config/keepassxc .config/Bitwarden .config/1Password .local/share/kwalletd .config/rclone
    .pgpass .my.cnf .mylogin.cnf .dbshell .s3cfg .boto .config/doctl .config/heroku .fly
    .config/netlify .config/vercel .local/share/com.vercel.cli .config/configstore .databricks.cfg
    .huggingface .cache/huggingface/token .config/anthropic .claude .claude.json .codex .gemini
    .config/openai .config/github-copilot .config/gcloud .config/sops .age .config/age .sops
    .mozilla .config/mozilla .thunderbird .config/google-chrome .config/google-chrome-beta
    .config/chromium .config/BraveSoftware .config/microsoft-edge .config/vivaldi .config/opera
    .config/Signal .config/Slack .config/discord .local/share/TelegramDesktop
    Library/Keychains Library/Cookies Library/Mail Library/Messages
    snap/firefox snap/chromium .var/app
    .bash_history .zsh_history .history .local/share/fish/fish_history .config/fish/fish_history
    .python_history .node_repl_history .psql_history .mysql_history .sqlite_history .lesshst
    .viminfo .wget-hsts .irb_history .rediscli_history .local/state/bash
    .config/autostart .config/systemd .local/share/systemd .local/share/applications
    .xauthority .Xauthority .ICEauthority .dbus .local/share/Trash
    """.split()
)
_SYSTEM_SECRETS = (
    *("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers"),
    *(
        "/etc/sudoers.d",
        "/etc/ssl/private",
        "/etc/ssh/ssh_host_rsa_key",
        "/etc/ssh/ssh_host_dsa_key",
        "/etc/ssh/ssh_host_ecdsa_key",
        "/etc/ssh/ssh_host_ed25519_key",
        "/etc/security/opasswd",
        "/etc/krb5.keytab",
    ),
    *("/etc/NetworkManager/system-connections", "/etc/wireguard", "/etc/openvpn", "/etc/ppp"),
    *("/etc/docker", "/etc/kubernetes", "/etc/letsencrypt", "/etc/pki/tls/private", "/etc/mysql"),
    *(
        "/etc/postgresql",
        "/etc/ipsec.secrets",
        "/etc/ipsec.d",
        "/etc/crypttab",
        "/etc/rsyncd.secrets",
    ),
    *("/var/lib/docker", "/var/lib/containerd", "/var/lib/kubelet", "/var/log", "/var/mail"),
    *("/var/spool", "/var/backups", "/var/lib/private", "/var/lib/postgresql", "/var/lib/mysql"),
    *("/run/docker.sock", "/run/containerd", "/run/podman", "/run/secrets", "/run/user"),
    *("/boot", "/lost+found"),
)
# What an ordinary agent does not write, whatever the mode.
_SYSTEM = (
    *("/bin", "/boot", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/nix", "/opt", "/sbin"),
    *("/snap", "/usr", "/var/lib", "/var/cache", "/var/log", "/run", "/System", "/Library"),
)
# What lies on people's PATH, or says what runs, inside of what package managers keep.
_KEPT = tuple(
    f"~/{name}" for name in ".cargo/bin .cargo/env .cargo/config .cargo/config.toml go/bin".split()
)
# What programs are made of, and what they ask for when they start.
_LEGIBLE = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/nix", "/snap", "/etc"),
    *("/var/lib/dpkg", "/var/lib/alternatives", "/var/cache/fontconfig", "/run/systemd/resolve"),
    *("/System", "/Library", "/opt/homebrew", "/home/linuxbrew/.linuxbrew", "/usr/local"),
    *(
        f"~/{name}"
        for name in """
        .pyenv .nvm .rustup .rbenv .rvm .asdf .sdkman .volta .bun .deno .fnm .jenv .nodenv .goenv
        .phpenv .plenv .tfenv .ghcup .opam .julia .dotnet .conda miniconda3 anaconda3 mambaforge
        miniforge3 micromamba .linuxbrew .local/bin .local/lib .local/pipx .local/share/uv
        .local/share/mise .local/share/rtx .local/share/pipx .local/share/pnpm .local/share/fnm
        .local/share/virtualenvs .virtualenvs .local/share/pypoetry .yarn .poetry .nix-profile
        .cargo/bin .cargo/env .cargo/config .cargo/config.toml go .gitconfig .config/git
        .config/pypoetry .terminfo .inputrc .local/share/man
        """.split()
    ),
)
# What package managers keep, and temporary folders. What lies on people's PATH is not among them.
_WRITABLE = (
    *("/tmp", "/var/tmp", "/dev/shm"),
    *(
        f"~/{name}"
        for name in """
        .cache .npm .cargo .cargo/registry .cargo/git .m2 go .gradle/caches .gradle/daemon
        .gradle/native .gradle/wrapper
        .ivy2 .sbt .nuget/packages .local/share/pnpm/store .bun/install/cache .deno/deps
        .node-gyp .electron-gyp .pub-cache .hex .mix Library/Caches .terraform.d/plugin-cache
        """.split()
    ),
)


class Profile(msgspec.Struct, frozen=True):
    """One profile. Paths may begin with `~`."""

    name: str
    forbidden: tuple[str, ...]  # in every mode
    sealed: tuple[str, ...] = ()  # never written, in no mode
    legible: tuple[str, ...] = ()  # commands may read and run it
    writable: tuple[str, ...] = ()  # commands may write it
    reads_outside: bool = False
    network: bool = True


STRICT = Profile(
    "strict",
    (
        *("/etc", "/root", "/home", "/usr", "/bin", "/sbin", "/lib", "/opt", "/boot"),
        *("/dev", "/proc", "/sys", "/var", "/tmp"),
        *("~/.ssh", "~/.gnupg", "~/.aws", "~/.config"),
    ),
)
STANDARD = Profile(
    "standard", (*_HOME_SECRETS, *_SYSTEM_SECRETS), (*_SYSTEM, *_KEPT), _LEGIBLE, _WRITABLE
)
OPEN = Profile(
    "open",
    (*_HOME_SECRETS, *_SYSTEM_SECRETS),
    legible=_LEGIBLE,
    writable=_WRITABLE,
    reads_outside=True,
)
PROFILES = {profile.name: profile for profile in (STRICT, STANDARD, OPEN)}


def strangers(home: str) -> tuple[str, ...]:
    """The homes of other users, as this machine knows them: forbidden in every profile."""
    import os
    import pwd

    own = os.path.realpath(home)
    found = []
    for entry in pwd.getpwall():
        place = os.path.realpath(entry.pw_dir)
        ordinary = place.startswith(("/home/", "/root", "/Users/", "/export/home/"))
        if ordinary and place != own and not own.startswith(place + "/"):
            found.append(place)
    return tuple(dict.fromkeys(found))
