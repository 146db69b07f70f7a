"""Further commands that look tame and run, or write, something that is not on the line."""

_LISTED = r"""
xxd -bc in out
xxd -pc in out
xxd in -c
xxd in -nc
xxd -aoA d -ogo
xxd -- in out
tree -Io x out
tree -LPo 1 x out
tree . -o out
tree --charset x
printf '%Ln' PATH
printf '%jLn' PATH
printf 'a%5.3Ln' PATH; ls
printf '%zzn' PATH
git log --format=%G?
git log -1 --pretty=format:%GS
git show --format='%h %GK'
git for-each-ref --format='%(signature)'
git log -1 --format=%+G?
git log -1 --format='%- GS' --pretty='%-GG'
git for-each-ref --format='%(*signature:grade)'
git log --pretty --output=P
git show --pretty --output=P
git log -U --output=P
git diff -U --output=P
git diff --unified --output=P
git log --format --output=P
git log -n --output=P
git log --grep --output=P
rg -g --pre=./evil x
rg --glob --pre ./evil x
rg -tA --pre=./evil x
sort -k -o P x
sort -t --output=P x
uniq -f -1x a b
fdfind -x touch P
vim.basic -c '!touch P' x
vim.tiny x
emacs-nox -l x
choom -n 0 -- touch P
logsave P touch P
sotruss touch P
ccache touch P
bear -- touch P
gcc-12 -B . x.c
gcc-12 -specs=x x.c
x86_64-linux-gnu-gcc -specs=x x.c
aarch64-linux-gnu-gcc-12 -wrapper ./evil x.c
openssl req -config evil.cnf
exiftool -if 'system("touch P")' x
exiftool -config evil x
lftp -c '!touch P'
cross-env A=B touch P
concurrently 'touch P'
tclsh8.6 x
guile-3.0 -c x
gdb-multiarch -ex 'shell touch P'
debconf touch P
sensible-pager x
py-spy record -- touch P
gpg --homedir x -k
mocha --require ./evil
node -V
npm config set script-shell ./evil
pnpm set script-shell ./evil
go env -w GOFLAGS=-toolexec=./evil
tox exec -- touch P
awk '{print}' /inet/tcp/0/127.0.0.1/80
tar cIf ./evil a.tar f
tar cFf ./evil a.tar f
tar xIf ./evil a.tar
gtar cIf ./evil a.tar f
make -E 'x:=$(shell touch P)'
make 'X=$(shell touch P)' test
make test 'X=$(shell touch P)'
make test CC=./evil
make -fevil.mk
make -kf evil.mk
make --makefile=evil.mk
make --fil=evil.mk
make -C /tmp/evil
make -C/tmp/evil
make -C ../other test
make --directory=/tmp/evil
gmake SHELL=./evil
just --shell ./evil test
just --command touch P
just x=1y test
npm init evil
npm create evil
npm innit evil
npm --silent exec evil
yarn exec touch P
yarn dlx evil
yarn node x.js
yarn create evil
pnpm dlx evil
pnpm exec touch P
corepack yarn x
uv tool run evil
uv run -m evil
uv run --with evil pytest
poetry run --x touch
bundle exec
rustup run stable touch P
conda run -n x touch P
mise exec touch P
mise x -- touch P
flatpak run --command=sh x
cargo watch -x run
cargo rustc -- -Clinker=./evil
cargo build --config 'build.rustc="./evil"'
go build --toolexec=./evil
go build -toolexec ./evil
go test --exec ./evil
go vet -vettool=./evil
go build -ldflags=-extld=./evil
go tool x
gcc --specs=x a.c
gcc @opts
g++ @opts
clang -fplugin=x a.c
clang @opts
c++ -B. a.c
cc -Wl,-plugin,./evil.so a.c
cc -Wl,@opts a.c
gcc -Xlinker -plugin a.c
gcc -fuse-ld=../evil a.c
ld -plugin ./x
ld @opts
ar --plugin ./x
java @opts
java -javaagent:evil.jar x
java -XX:OnOutOfMemoryError=x y
javac -processorpath . x.java
rustc @opts
sqlite3 x '.shell touch P'
psql -c '\! touch P'
mysql -e 'system touch P'
duckdb -c '.shell touch P'
dc -e '!touch P'
m4 x
gnuplot -e 'system "touch P"'
octave --eval 'system x'
R -e 'system("touch P")'
julia -e x
ghc -e main
erl -eval x
guile -c x
groovy -e x
elixir -e x
jshell x
luajit -e x
python3.11-dbg -c x
python3-dbg x.py -c
bash-static -c x
perl5.36-x86_64-linux-gnu -e x
busybox-static touch P
ipython -c x
ts-node -e x
pwsh -c x
nu -c x
xonsh -c x
elvish -c x
python3 /dev/stdin
python3 //dev/stdin
python3 /dev/../dev/fd/0
cat x | bash /dev/stdin
cat x | sh /proc/self/fd/0
cat x | perl /dev/fd/0
/lib64/ld-linux-x86-64.so.2 /bin/touch x
/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2 /bin/rm x
/lib/ld-musl-x86_64.so.1 /bin/touch x
/lib/ld.so.1 x
install -s --strip-program=./evil a b
install -s --strip-prog ./evil a b
sdiff --diff-program=./evil a b
diff3 --diff-program=./evil a b c
cpio -o --rsh-command=./evil
rsync a host:b
rsync rsync://host/a b
valgrind touch P
perf stat touch P
hyperfine 'touch P'
chronic touch P
ifne touch P
pee 'touch P'
setarch x86_64 touch P
linux64 touch P
runcon -t x touch P
sg root -c 'touch P'
gosu x touch P
tini -- touch P
envdir x touch P
daemonize touch P
eatmydata touch P
faketime now touch P
xvfb-run touch P
dbus-launch touch P
ssh-agent touch P
systemd-inhibit touch P
systemd-cat touch P
watchexec touch P
gnome-terminal -- touch P
kitty touch P
direnv exec . touch P
nix-shell --run 'touch P'
nix run x
pdflatex -shell-escape x
xelatex --shell-escape x
pandoc --filter ./evil x
pandoc -F ./evil x
bat --pager=./evil x
delta --pager ./evil
mypy --python-executable ./evil x
pip config edit --editor=./evil
pip3 --python ./evil install x
openssl x -provider-path . -provider evil
openssl engine -t ./evil.so
ssh-keygen -D ./evil.so
emacsclient -e x
gvim x
mail x
gh alias set x '!touch P'
gh extension exec x
foo --exec=touch
foo --post-hook touch
foo --pre-command 'touch P'
foo -plugin ./evil.so
cat < /dev/tcp/127.0.0.1/80
cat < '/dev/udp/secret.example.org/53'
echo x > /dev/tcp/127.0.0.1/80
ls 2> /dev/tcp/127.0.0.1/80
tar -tf host:x
tar cf host:x y
cpio -i -F host:x
mt -f host:x status
npm --prefix=/tmp run x
npm --pref /tmp run x
yarn -C x test
cargo -C /tmp build
cargo build --manifest-path /tmp/x
cargo build --manifest-p=/tmp/x
go -C /tmp build
go build -overlay x.json
rustc -C linker=./e x.rs
rustc -Clinker=./e x.rs
rustc --codegen=linker=./e x
apt -o APT::x=y list
apt-get -o DPkg::Pre-Invoke::=x install y
apt-get --opt DPkg::Pre-Invoke::=x install y
composer exec x
composer run-script x
mvn exec:java
mvn org.codehaus.mojo:exec:java
mvn -f /x test
gradle -I x.gradle
gradle --init-script x
gradle -b x
ant -f x
ant -lib x
rake -f x
rake -e x
ninja -C /tmp
ninja -f x
latexmk -e x
latexmk -pdflatex=./e x
rpm -E '%(touch P)'
rpm --eval '%(touch P)'
rpm --pipe ./e -qa
rpm --define 'x %(touch P)' -qa
ssh-add -s ./e.so
ctags --options=x
pytest -p evil
pytest -pevil
pytest -c x.ini
pytest --pdbcls=a:b
pytest -o 'addopts=-p evil'
mypy --config-file x y
eslint --rulesdir x y
eslint -c x y
eslint --parser ./e x
prettier --config x y
patch --get=1
ldd ./x
zless x
zmore x
lynx x
w3m x
fzf
tig
cscope -R
mix run -e x
rails runner x
bazel run x
act
LC_ALL=C touch P
echo {a,b}
echo a{1..3}
ls ~+
cat <(touch P)
tee >(touch P)
coproc touch P
command -p touch P
command -V ls
builtin echo x
exec -a ls touch P
exec touch P
env -S 'touch P'
env -iS'touch P'
timeout -k 1 5 touch P
nice -n 5 touch P
stdbuf -oL touch P
script -c 'touch P' /dev/null
watch touch P
parallel touch ::: P
setpriv --reuid 1 touch P
git -c alias.x=!touch x
git -c core.pager=touch log
git --paginate log
git -p log
git fetch --upload-pack=./e origin
git fetch --upl ./e origin
git ls-remote ext::sh
git ls-remote --upload-pack=./e .
git archive --remote=x --exec=./e HEAD
git difftool
git mergetool
git bisect run touch P
git submodule foreach touch P
git rebase --exec 'touch P' HEAD~1
git rebase -x 'touch P' HEAD~1
git verify-commit HEAD
git log --show-signature
git credential fill
git filter-branch --tree-filter 'touch P' HEAD
git maintenance run
git send-email x
git web--browse x
git instaweb
git help log
git log --help
git --exec-path=/tmp status
git --html-path
git -C /tmp status
git --work-tree=x status
git fast-import
git daemon
git upload-pack .
git merge --strategy=../e x
git diff --no-index a b
git diff --output=P
git log --output=P
git show --output P
git log --o=P
git grep -O./e x
git grep --open-files-in-pager=./e x
git grep -nO x
git cat-file --textconv HEAD:x
git cat-file --filters HEAD:x
git var GIT_EDITOR
git remote add x ext::sh
git clone -c core.x=y u
git clone --config=x u
git push --receive-pack=./e
git push --rec=./e
git push --exec=./e
rg --pre ./e x
rg --pre=./e x
rg --search-zip x
rg --hostname-bin=./e x
rg --hyperlink-format=x y
fd -x touch
fd -X touch
fd --exec touch
fd foo
tar --checkpoint=1 --checkpoint-action=exec=./e -cf /dev/null x
tar --checkpoint-a=exec=./e -cf /dev/null x
tar -I./e -cf x y
tar --use-comp=./e -cf x y
tar --to-com=./e -xf y
rsync -e ./e a b
rsync -ae ./e a b
rsync --rsh ./e a b
rsync --rs=./e a b
man -P ./e ls
man -H./e ls
man --html=./e ls
info ls
vim -c ':!touch P' x
vim -es x
view x
ex -s x
make -s -f x
make --file x
make -I /tmp x
npm --script-shell=./e run x
npm run x --script-shell ./e
npm explore x
find . -fprintf P x
find . -fprint P
find . -fls P
find . -exec touch P +
find . -execdir x +
find . -ok x +
find . -files0-from P
find -D exec .
find -O3 . -name x
sort --compress-program=./e x
sort --compress-prog ./e x
sort -o P x
sort -oP x
sort -uoP x
sort --output=P x
sort -T /x y
sort -S 1 y
sort --files0-from=x
ip netns exec x touch P
jq -f x y
jq -L x y
jq --rawfile a b c
python -c 'x'
python -im x
python -Ic x
python - x
cpio -iF host:x
zip x y -T -TT ./e
zip x y --test --unzip-command ./e
pytest --pdb
mypy --python-executable ./e x
cargo --manifest-path=/tmp/x build
cmake -DCMAKE_C_COMPILER=./e .
rebar3 shell
swift build
just -f x
eslint --resolve-plugins-relative-to x y
prettier --plugin=./e x
pandoc -F ./e x
ssh-keygen -D ./e.so
nm --plugin ./e x
rpm --eval %x
rpm -E %x
guix x
split --filter=./e x
links x
elinks -eval x
dc x
ctags -R --pcmd=./e
cscope
patch --get=1 < x
date 010100002030
date -s x
date -f x
date --set=x
date --s=x
newgrp x
sg x
who /x
users x
flock x touch P
xxd x P
xxd -r x
test -v 'a[$(touch P)]'
test 'a[$(touch P)]' -eq 1
test -t 'x'
type -a x
hash -p ./e ls
declare -i x=y
export X=y
trap x EXIT
ulimit -c 0
jobs
fc -l
bind -x x
enable -f ./e x
complete -C x
compgen -C x
mapfile -C x
readarray -C x
shopt -s extglob
alias x=y
dirs
cd x y
times
ls &> P
ls >& P
ls <> P
ls > /dev/tcp/127.0.0.1/80
cat < /dev/udp/1/1
git for-each-ref --sort=signature
git for-each-ref --sort=-signature:grade
git for-each-ref --sort -*signature
rename 's/.*/system(1)/e' x
prename -n s/a/b/ x
scp -o ProxyCommand=./evil a b:c
scp -S ./evil a b:c
scp -qS./evil a b:c
sftp -D ./evil x
ftp x
wget -e use_askpass=./evil x
wget --use-ask=./evil x
wget -qe use_askpass=./evil x
curl -K evil
curl -sK evil
curl --config evil
aria2c --on-download-complete=./evil x
gpg --photo-viewer=./evil x
sox '|touch P' x.wav
gm convert '|touch P' x.png
someperlscript 'touch P|'
qemu-x86_64 /bin/rm x
qemu-aarch64-static ./evil
mpirun -n 1 rm x
srun rm x
mlr -n put 'end{system("touch P")}'
watchman -- trigger . x -- touch P
logrotate evil.conf
jj log
zellij run -- touch P
cmd.exe /c x
python -m IPython -c x
python -m asyncio
python -m pytest -p evil
python3 -m pytest --pdbcls=evil:x
python -m idlelib -c x
python -m debugpy -c x
python3.12 -m xonsh -c x
python -m tox exec -- rm x
pypy3 -m timeit x
python -m cProfile x
"""

HIDDEN = _LISTED.strip().splitlines()

# Programs that are named behind another one, which is named too.
BEHIND = {
    "uv run rm x": "rm",
    "poetry run rm -rf x": "rm",
    "bundle exec rm x": "rm",
    "pipenv run /bin/rm x": "rm",
    "uv run uv run rm x": "rm",
    "pyenv exec rm x": "rm",
}

# What asks the folder that it is called in, or loads what lies there.
NOT_LOW = [
    *("yarn --version", "pnpm --version", "cargo --version", "rustc --version", "rustup --version"),
    *("pytest --version", "poetry --version", "dotnet --version", "go --version"),
    *("cmake -V", "make -V", "git-lfs --version"),
]

# Ordinary work that must stay what can be listed.
PLAIN = [
    *("uv run pytest -q", "poetry run mypy src", "bundle exec rake", "make -C sub test"),
    *("make -j4 V=1", "npm run build", "yarn build", "pnpm install"),
    *("cargo build --release", "cargo test", "go build ./...", "go test ./...", "go vet ./..."),
    *("go build -ldflags '-X main.version=1'", "gcc -O2 -c a.c -o a.o", "cc -lm a.o"),
    *("tar xzf a.tar.gz", "tar -cf a.tar src", "rsync -a src dst", "pip install -r x.txt"),
    *("python3 x.py", "python3 -m pytest", "bash x.sh", "gh pr list", "nix build"),
    *("go test -run=TestClient ./...", "go test -count=1 -coverprofile=C.out ./...", "mvn test"),
    *("mvn -Dtest=FooTest test", "gradle -Dorg.gradle.jvmargs=-Xmx2g test", "ninja", "rpm -qa"),
    *("latexmk -interaction=nonstopmode x", "pytest -x -vv tests", "pytest -k 'a and b'"),
    *("eslint src", "prettier --write x", "apt list", "composer install", "mix test"),
    *("cmake --build build --config Release", "gcc-12 -O2 -c a.c", "clang-14 -c a.c"),
    *("x86_64-linux-gnu-strip a.out", "pip install --require-hashes -r x.txt", "go env GOPATH"),
    *("just test", "mypy src", "ruff check .", "java -jar x.jar", "javac x.java", "python3-config"),
    *("python -m http.server 8000", "python -m venv .venv", "python -m pip install x"),
    *("python -m unittest discover", "python3.12 -m mypy src", "git tag -l 'signature*'"),
]
