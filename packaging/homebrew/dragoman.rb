# A tap's formula. A release fills in where it lies, its digest and the resources.
class Dragoman < Formula
  include Language::Python::Virtualenv

  desc "Agent host that speaks every agent protocol"
  homepage "https://example.org/dragoman"
  url "https://example.org/dragoman/dragoman-0.1.0.tar.gz"
  sha256 "0000000000000000000000000000000000000000000000000000000000000000"
  license "Apache-2.0"

  depends_on "python@3.13"

  def install
    virtualenv_install_with_resources
    generate_completions_from_executable(bin/"dragoman", "completion")
    man1.install_symlink libexec/"share/man/man1/dragoman.1"
  end

  service do
    run [opt_bin/"dragoman", "daemon"]
    keep_alive true
    log_path var/"log/dragoman.log"
    error_log_path var/"log/dragoman.log"
  end

  test do
    system bin/"dragoman", "self-test"
  end
end
